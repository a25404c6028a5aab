"""What only nox and the tests run: the catalogue of causes and its score, faults, seeds."""
