"""Loops of Python that were unrolled into a program: found, and made into a `jax.lax.scan`."""
