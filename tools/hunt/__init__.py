"""Hunts for miscompiles: random small programs on whole numbers, compiled against computed exactly.

`nox -s hunt` runs it. `grammar` draws programs, `operations` has what they are made of,
`program` computes them in NumPy and writes them as plain JAX, `worker` runs them in a process that
may crash or hang, `hunting` compares and shrinks, `passes` finds the pass that did it, and
`reporting` keeps what was found.
"""
