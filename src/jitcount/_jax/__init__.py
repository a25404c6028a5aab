"""All that is JAX's own and can move with a release; in a user's program it is only read.

Each use says why it is needed and what happens when a release takes it away; `tests/_jax` shows on
every supported release that it does not have to.

=============  ====================================================================================
`events`       what JAX reports: names of events, lines of its log, and how to listen to both
`frames`       the call that is compiled, from the local variables of JAX's functions on the stack
`lowering`     the program that is compiled: lowered again for another platform, compiled, hashed
`trees`        what a node of a pytree keeps beside its children
`jaxprs`       programs as JAX holds them before they are lowered
`options`      JAX's record of what `jax.jit` was called with
`settings`     the settings that are part of JAX's cache key
`origin`       whose code something is: JAX's, or a user's
`faulty`       primitives that compute wrongly for a block, to see what the suite notices of it
=============  ====================================================================================
"""
