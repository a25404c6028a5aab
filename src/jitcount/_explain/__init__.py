"""Why it compiled: what differs from the nearest earlier program, and what to do about it.

`history` finds the nearest earlier programs, `diff` names what differs from them, and each of the
`causes` says itself in words. `explain` puts them together as a `Compile`, and `summary` says which
recompiles cost most.
"""
