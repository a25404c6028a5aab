"""The remedy for ragged shapes: a few sizes (`plan`), and functions padded to them (`bucketed`)."""
