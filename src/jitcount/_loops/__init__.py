"""Loops of Python that left the same operations again and again: found, and made into a scan."""
