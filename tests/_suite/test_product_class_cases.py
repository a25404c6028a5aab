"""Products and what follows them: that every combination is there, and a planted fault is seen."""

from __future__ import annotations

import math
from itertools import compress
from itertools import product as combinations
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import pytest
from jax.extend.core import Literal

from jitcount._ledger.findings import verdicts
from jitcount._miscompiles.known import KNOWN, jaxlib_release
from jitcount._suite.case import run_case
from jitcount._suite.product_class_cases import (
    BATCHES,
    DTYPES,
    EDGE,
    FAR,
    LARGE,
    MATRICES,
    PAST,
    PLACES,
    PRODUCT_CLASS_CASES,
    PRODUCTS,
    ROWS,
    SMALL,
    Variant,
    around_the_edge,
    every,
    follows,
    fused,
    fused_as,
    gradients,
    of_dtype,
)
from jitcount._suite.running import chosen

if TYPE_CHECKING:
    from collections.abc import Iterable

LARGE_ONES = [*every(LARGE), *fused("float32")]


def pairs(variants: Iterable[Variant], *fields: str) -> set[tuple[str, ...]]:
    return {tuple(getattr(variant, field) for field in fields) for variant in variants}


def test_every_product_is_batched_in_every_way_small_and_large() -> None:
    for size in (SMALL, LARGE):
        found = pairs(every(size), "product", "batch")
        assert found == set(combinations(PRODUCTS, BATCHES)), size


def test_everything_follows_every_product() -> None:
    wanted = {(product, follow) for product in PRODUCTS for follow in follows(product)}
    assert pairs(LARGE_ONES, "product", "follow") == wanted


def test_every_way_to_batch_is_followed_by_most_of_it() -> None:
    found = pairs(LARGE_ONES, "batch", "follow")
    for batch in BATCHES:
        assert sum(one == batch for one, _ in found) >= 20, batch


def test_the_batch_has_every_place_in_every_way_to_batch() -> None:
    assert pairs(every(LARGE), "batch", "place") == set(combinations(BATCHES, PLACES))
    assert pairs(every(LARGE), "product", "place") == set(combinations(PRODUCTS, PLACES))


def test_every_type_is_multiplied_in_every_kind_of_product() -> None:
    for dtype in DTYPES:
        assert pairs(of_dtype(dtype), "product") == {(product,) for product in PRODUCTS}


def test_there_are_gradients_by_both_operands_of_every_product() -> None:
    found = {(each.product, each.by) for each in gradients()}
    assert found == set(combinations(PRODUCTS, (0, 1)))


def test_sizes_are_on_both_sides_of_where_a_compiler_changed_its_way() -> None:
    assert ROWS[SMALL]["n"] < ROWS[EDGE]["n"] == 2**15 < ROWS[PAST]["n"] < ROWS[FAR]["n"]
    results = {size: MATRICES[size]["i"] * MATRICES[size]["k"] for size in MATRICES}
    assert results[SMALL] < results[EDGE] < results[LARGE] < results[PAST] < results[FAR]


def test_no_case_has_both_what_is_fused_and_what_is_not() -> None:
    names = {name: case.id for case in PRODUCT_CLASS_CASES for name in case.names}
    beside = [*every(SMALL), *every(LARGE), *around_the_edge(EDGE, PAST, FAR)]
    for variant in (*beside, *fused("float32")):
        kind = fused_as(variant)
        assert (names[str(variant)] == f"class-product-{kind}") == bool(kind), variant


def test_the_table_of_miscompiles_names_what_is_fused() -> None:
    entries = [each for each in KNOWN if each.reference == "jax #39103"]
    named = {
        case.id: [each.releases for each in entries if each.makes_wrong(case.id)]
        for case in chosen(["class-product-*"])
    }
    assert {case: releases for case, releases in named.items() if releases} == {
        "class-product-rows-squared": [("0.10.2", "0.10.2")],
        "class-product-float64-reduced": [("0.10.2", "0.10.2")],
        "class-product-rows-reduced": [("0.9.1", "0.10.2")],
        "class-product-matrices-reduced": [("0.10.2", "0.11.2")],
    }


@pytest.mark.parametrize("product", PRODUCTS)
def test_all_sums_are_exact_in_float32(product: str) -> None:
    for size in (SMALL, LARGE):
        variant = Variant(product=product, batch="both", follow="nothing", size=size)
        assert np.sum(np.abs(variant.true_product()) ** 2) < 2**24


@pytest.mark.skipif(jaxlib_release() != "0.10.2", reason="only 0.10.2 is wrong")
@pytest.mark.thorough
def test_release_0_10_2_gets_each_of_the_fused_ones_wrong() -> None:
    for case in chosen(["class-product-*-reduced", "class-product-*-squared"]):
        assert not any(verdict.holds for verdict in verdicts(run_case(case, calls=1))), case.id


# --- A planted compiler ---------------------------------------------------------------------------

_LIMIT = 9_000
_REDUCTIONS = ("reduce_sum", "reduce_max", "reduce_min")
_KEPT = ("transpose", "mul", "reshape", "convert_element_type")


def computed_wrongly(program: Any, *given: Any) -> tuple[list[Any], list[bool]]:
    """What a program returns if large products are reduced wrongly, and what of it is a product."""
    values: dict[Any, Any] = {}
    products = set()

    def value(variable: Any) -> Any:
        return variable.val if isinstance(variable, Literal) else values[variable]

    values |= zip(program.jaxpr.constvars, program.consts, strict=True)
    values |= zip(program.jaxpr.invars, given, strict=True)
    for equation in program.jaxpr.eqns:
        operands = list(map(value, equation.invars))
        name = equation.primitive.name
        is_product = any(one in products for one in equation.invars if not isinstance(one, Literal))
        inside = equation.params.get("call_jaxpr", equation.params.get("jaxpr"))
        if inside is not None:  # a jit in the program, or a function with its own derivative
            found, are_products = computed_wrongly(inside, *operands)
            products |= set(compress(equation.outvars, are_products))
        else:
            made = equation.primitive.bind(*operands, **equation.params)
            found = list(made) if equation.primitive.multiple_results else [made]
        if name in _REDUCTIONS and is_product and math.prod(operands[0].shape) > _LIMIT:
            found = [found[0] + 1]
        if name == "dot_general" or (is_product and name in _KEPT):
            products.add(equation.outvars[0])
        values |= zip(equation.outvars, found, strict=True)
    returned = program.jaxpr.outvars
    return list(map(value, returned)), [variable in products for variable in returned]


@pytest.mark.thorough
def test_a_compiler_that_reduces_large_products_wrongly_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = jax.jit

    def wrong(program: Any, **_: Any) -> Any:
        def planted(*arguments: Any) -> Any:
            traced = jax.make_jaxpr(program)(*arguments)
            return computed_wrongly(traced, *jax.tree.leaves(arguments))[0]

        return right(planted)

    monkeypatch.setattr(jax, "jit", wrong)
    found = {}
    for case in chosen(["class-product-matrices-small", "class-product-matrices-large"]):
        entry = run_case(case, calls=1)
        assert entry.error == ""
        judged = zip(entry.results, verdicts(entry), strict=True)
        found[case.id] = [result.name for result, verdict in judged if not verdict.holds]
    assert found["class-product-matrices-small"] == []
    noticed = {name.rpartition(", then ")[2] for name in found["class-product-matrices-large"]}
    assert noticed >= {
        "sum",
        "sum of squares",
        "largest",
        "smallest",
        "sum of columns",
        "largest of columns",
        "sum of both axes",
        "sum of the batch",
        "sum of everything",
    }
    assert not noticed & {"nothing", "picked", "picked rows", "sorted", "place of the largest"}
