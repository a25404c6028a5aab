"""How far the sum of an array moves where its order is not known.

Each addition rounds its partial sum s to the nearest, and is off by up to u·|s|, up as often as
down: the variance of that is at most u²·s²/3. So a sum's own variance is u²/3 times the sum of the
squares of its partial sums. These depend on the order, and that is another one on each backend. In
a random order k of n terms add up, on average over the orders, to a square of

    k·q/n + k·(k-1)·(T² - q) / (n·(n-1)),    q = Σx², T = Σx

so all that is needed of the data is q and T (`variance_factors`). Terms of one sign have large
partial sums, and terms that cancel have small ones: a sum of 100,000 normals is some hundreds, and
moves by some ten-thousandths. `error_bounds` has what holds for every order, which is far wider.

Two things have no part in the model. Where all partial sums are exact, as whole numbers' are,
nothing moves at all. And what is added up again and again (a tenth to a tenth) is rounded the same
way each time, by more than chance would.
"""

from __future__ import annotations

import functools

from jitcount._numerics.error_bounds import TILE


@functools.cache
def variance_factors(terms: int) -> tuple[float, float]:
    """A and B of the variance of a sum in a random order: u²/3 · (A·Σx² + B·((Σx)² - Σx²)).

    A is the expected sum of k/n over all partial sums, those of k terms out of n; B that of
    k·(k-1) / (n·(n-1)). A sum of one term is not rounded.

    >>> variance_factors(1), variance_factors(2)
    ((0.0, 0.0), (1.0, 1.0))
    >>> import numpy as np
    >>> normals = np.random.default_rng(0).normal(size=100_000)
    >>> squares, total = np.sum(normals**2), np.sum(normals)
    >>> a, b = variance_factors(normals.size)
    >>> f"{2**-24 * np.sqrt((a * squares + b * (total**2 - squares)) / 3):.1e}"
    '2.5e-04'
    """
    if terms < 2:
        return 0.0, 0.0
    tile = min(terms, TILE)
    tiles = -(-terms // tile)
    # In a tile partial sums have 2 to `tile` terms; between tiles 2 to `tiles` of them.
    single = tiles * (tile * (tile + 1) / 2 - 1)
    pairs = tiles * ((tile - 1) * tile * (tile + 1) / 3)
    for count in range(2, tiles + 1):
        added = min(count * tile, terms)
        single += added
        pairs += added * (added - 1)
    return single / terms, pairs / (terms * (terms - 1))
