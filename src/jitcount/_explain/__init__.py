"""Why it compiled: what differs from the nearest earlier program, and what to do about it.

`history` finds the nearest earlier programs, and `diff` names what differs from them. Each cause
says itself in words. `fixes` says what to do: `recompiles` about jitted functions, `outside_jit` about
operations that are compiled by themselves, of which `callers` finds the call to jit.
"""
