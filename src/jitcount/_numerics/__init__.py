"""Numbers to the bit, what floating point promises about them, and whether a result keeps it.

`arrays` writes arrays down exactly. `error_bounds` says how far roundings carry a result, and
`rounding` follows these bounds through a computation; `random_order` is about sums alone.
`expected` is what a result must be, and `judging` grades a result by it. Nothing here knows about
JAX, compiles or files.
"""
