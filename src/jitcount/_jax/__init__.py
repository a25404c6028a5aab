"""Everything private to JAX that can move with a release.

Each file is named after the part of JAX that it uses. Each use says why it is needed and what
happens if a release takes it away; `tests/_jax` checks on every supported release that none has.
In a user's program JAX is only read, except inside of `as_if`, and while a profile watches XLA.
"""
