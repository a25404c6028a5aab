"""All products of a product at once, or one by one: the same bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import numpy as np
import pytest

from jitcount._emulate.arithmetic import arithmetic_of
from jitcount._emulate.rules import products
from jitcount._emulate.translate import translate
from jitcount._targets.names import parse
from tests._emulate.cases import simple

if TYPE_CHECKING:
    from tests._emulate.conftest import Run

TPU = arithmetic_of(parse("tpu:v5e"))
MATRICES = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
BATCHES = (
    "lhs_batch_dims={0}, rhs_batch_dims={2}, lhs_contracting_dims={1}, rhs_contracting_dims={1}"
)

# Extents of left, right and result, and the axes that are multiplied.
Product = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], str]


@pytest.mark.parametrize(("precision", "passes_of"), [("high", 3), ("highest", 6)])
@pytest.mark.parametrize(
    "product",
    [
        ((20, 30), (30, 40), (20, 40), MATRICES),
        ((1, 30), (30, 40), (1, 40), MATRICES),
        ((3, 30, 5), (6, 30, 3), (3, 5, 6), BATCHES),
    ],
    ids=["matrices", "row", "batches"],
)
def test_at_once_is_as_one_by_one(
    product: Product,
    precision: str,
    passes_of: int,
    run_hlo: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left, right, made, axes = product
    rng = np.random.default_rng(7)
    given = [rng.normal(size=extents).astype(np.float32) for extents in (left, right)]
    how = f"{axes}, operand_precision={{{precision},{precision}}}"
    case = simple("dot", (given[0], given[1]), np.zeros(made, np.float32), how)
    (at_once,) = run_hlo(case.text, *given, arithmetic=TPU)
    assert translate(case.text, TPU).text.count("dot_general") == 1
    monkeypatch.setattr(products, "_SMALL", 0)
    (one_by_one,) = run_hlo(case.text, *given, arithmetic=TPU)
    assert translate(case.text, TPU).text.count("dot_general") == passes_of
    if jax.__version_info__ >= (0, 10):
        np.testing.assert_array_equal(at_once, one_by_one)
    else:  # a row is multiplied in another way there than a batch of rows: in another order
        np.testing.assert_allclose(at_once, one_by_one, rtol=0, atol=2**-17)
    assert np.abs(at_once).max() > 1
