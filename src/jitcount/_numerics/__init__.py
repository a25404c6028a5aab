"""Numbers to the bit, what floating point promises of them, and whether a result keeps it.

`arrays` writes arrays down exactly. `rounding` bounds what a computation can be off, and `chances`
what it is off as a rule. `expected` is what a result must be, `judging` holds a result against it.
Nothing here knows of JAX, of compiles or of files.
"""
