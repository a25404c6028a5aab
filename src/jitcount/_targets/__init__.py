"""Compilers without their devices: the same program through XLA:TPU and XLA:GPU, on any machine."""
