"""Numbers to the bit, what floating point promises of them, and whether a result keeps it.

`arrays` writes arrays down exactly, `rounding` bounds what a computation can be off, `judging`
holds a result against what it must be. Nothing here knows of JAX, of compiles or of files.
"""
