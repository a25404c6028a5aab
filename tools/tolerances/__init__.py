"""Tolerances against what JAX computes: on each release, in several ways, and with faults."""
