"""What users open around a block: the recorder and its log."""
