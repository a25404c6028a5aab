"""Hears JAX, and describes each compile while its arguments are still there.

`hearing` listens to JAX and tells its `audience`; `phases` and `under_way` put a compile's parts
together, `call_site` finds the user's line. `program` describes what makes the compiled program
different from others: `functions`, `arguments` (by `trees`, `values` and `statics`, in the words of
`texts`), `surroundings` and, for other libraries' jits, `wrappers`.
"""
