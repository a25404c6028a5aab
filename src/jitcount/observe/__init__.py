"""Hears JAX, and describes each compile while its arguments are still there.

`hearing` listens to JAX, `phases` puts a compile's parts together, `call_site` finds the user's
line. `program` describes what makes the compiled program different from others, with the help of
`functions`, `trees`, `values` and, for other libraries' jits, `wrappers`.
"""
