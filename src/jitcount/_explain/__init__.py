"""Why it compiled: what differs from the nearest earlier program, and what to do about it.

`hub` hears of each compile and keeps the `history`, which finds the nearest programs. `explaining`
writes a compile out: `differences` names what differs, and each of the `causes` says itself in
words. `hotspots` sums up which recompiles cost most.
"""
