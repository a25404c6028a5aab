"""Listens to JAX, and describes each compile while its arguments still exist.

Start with `listener`, which subscribes to JAX's events. `program` describes what makes a compiled
program differ from others: function, arguments, static values, options and settings.
"""
