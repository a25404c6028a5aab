"""What the command does, one file a sub-command; each adds itself to the parser in `cli`."""
