"""The same run under other releases of JAX, each in an environment of its own.

`requirements` reads what is installed here, `environments` has uv install that with another JAX,
and `runs` starts the command here and in each of them. What they wrote is compared elsewhere: these
are ledgers like any other. None of it imports JAX.
"""
