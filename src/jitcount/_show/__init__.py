"""Shows what was found: as `parts` first, then by one renderer a medium."""
