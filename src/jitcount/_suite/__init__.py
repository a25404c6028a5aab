"""The cases that every backend runs, and the check that it is the backend one asked for."""
