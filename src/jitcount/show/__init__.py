"""Shows what was found: tables for a terminal."""
