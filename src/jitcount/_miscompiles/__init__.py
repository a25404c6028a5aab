"""Programs that a release of JAX computes wrongly: those that are known, and those that are found.

`known` is a table of miscompiles that were reported in public, with the releases that have them.
`kernels` recognises some of them by the operations of a compiled program.
`cublas` recognises products of XLA:GPU in the same way.
`suspects` finds programs that such a release may have compiled wrongly, by their operations.
`checking` computes what was compiled, and the same operations one by one, and compares the two.
"""
