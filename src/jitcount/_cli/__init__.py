"""What the command does, one file a sub-command; `arguments` declares them all."""
