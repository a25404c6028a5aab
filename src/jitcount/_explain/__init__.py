"""Why it compiled: what differs from the nearest earlier program, and what to do about it.

`history` finds the nearest earlier programs, and `diff` names what differs from them, as `causes`,
each of which says itself in words. `explain` makes a `compile` of what was seen, with them, and
`summary` says many of them in few sentences. `fixes` is what to do, each a `fix`, by what it saves
in seconds of the `clock`: `recompiles` about jitted functions, `outside_jit` about operations that
are compiled by themselves, of which `callers` finds the call to jit: each line is a `caller`, and
`jittable` says whether what it calls could be jitted.
"""
