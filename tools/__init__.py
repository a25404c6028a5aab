"""What only nox and the tests run: the catalogue of causes, its score, faults and seeds."""
