"""Hears JAX: its events become `Compile` records, and records become a log.

`hearing` listens to JAX, `phases` puts a compile's parts together, `call_site` finds the user's
line, `log` holds what was found, `record` is what users call. Why a compile happened and how it
is shown is left to the rooms to the right.
"""
