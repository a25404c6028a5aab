"""Runs a program again with one call under a jit, to see what the advice to jit it is worth.

`trying` is where it begins: it starts `processes`, compares what they measured, and makes a
`Trial` of each call, which `sentences` puts into words. `advised` reads the calls from what there
is to fix.
In the process that runs the program again, `rewriting` puts `measuring` in place of the calls;
`jitted_call` is what both sides know of a call. `results` compares what the calls returned.
"""
