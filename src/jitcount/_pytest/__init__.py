"""The pytest plugin, imported by `jitcount_pytest` when a test or an option needs it."""
