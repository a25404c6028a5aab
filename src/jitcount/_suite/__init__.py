"""The cases that every backend runs, and what runs them."""
