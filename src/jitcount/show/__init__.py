"""Shows what was found: functions that return `parts`, and one renderer a medium: `terminal`."""
