"""Listens to JAX, and describes each compile while its arguments are still there.

`listener` follows compiles, each as one record of `in_flight`, with the help of `log_lines`,
`measuring` and `muting`; `call_site` finds the user's line, `callers` all lines that led to it.
`program` describes what makes a program different from others: `functions`, `arguments` (with
`trees`, `values`, `array_type` and `statics`, in the words of `texts`), `transformations`,
`surroundings` (JAX's settings and the jit's options) and, for the jits of other libraries,
`wrappers`. All of them look at the user's objects by `safe_inspect`.
"""
