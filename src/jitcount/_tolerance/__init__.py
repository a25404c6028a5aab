"""What a function's result must be within, derived from the function itself.

A function's jaxpr is evaluated in NumPy, many times at once: in double precision, which is the
reference, and as often with each operation rounded at random onto the numbers that its own dtype
has (Monte Carlo arithmetic: Parker, Pierce and Eggert 2000; stochastic rounding as in Verificarlo,
CADNA and Verrou). How far these draws scatter is how far any backend may be off, as a rule.

`lanes` holds the draws and rounds them, `sums` says how far an order of summation moves a sum,
`rules` has one function for each operation, `program` reads a jaxpr into steps and runs them.
`widths` makes a tolerance of the scatter. `tolerance` is what users call: `tracing` makes the
jaxpr, `products` says how a chip multiplies, `lines` finds the lines that lose digits, and
`assertions` holds results against a tolerance.
"""
