"""Each operation against JAX's own, which must be within a tolerance that is worth the name."""

from typing import Any

import jax
import pytest

from jitcount._jax.jaxprs import inner_jaxprs
from jitcount._tolerance.assertions import difference
from jitcount._tolerance.rules import RULES
from jitcount._tolerance.tolerance import tolerance
from tools.tolerances.operations import CALLS

# Of their size, results of float32 are off by this at most here.
_USUAL = 3e-5
_WIDER = {"to float16": 5e-3, "a sum of float16": 2e-2, "to bfloat16 and back": 5e-2,
          "betainc": 2e-4, "pinv": 1e-4}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_what_jax_computes_is_within_the_tolerance(name: str) -> None:
    f, arguments = CALLS[name]
    expected = tolerance(f, *arguments)
    assert difference(jax.jit(f)(*arguments), expected, name) == ""
    for result in expected.results:
        assert result.relative <= _WIDER.get(name, _USUAL)


# Rules of what JAX has in some releases only, or asks for in ways that no public function has.
_NOT_CALLED = frozenset(
    {"add_any", "copy_p", "copy", "device_put", "pvary", "pcast", "sharding_constraint",
     "mesh_cast", "reshard", "expand_dims", "empty", "empty2", "scatter_add", "scatter_sub",
     "scatter_mul", "scatter_min", "scatter_max", "scatter-sub", "lt_to", "le_to", "conj",
     "reduce_or", "reduce_and", "reduce_xor", "stack", "split", "square", "qr", "geqrf", "ormqr",
     "stop_gradient", "scatter", "random_gamma_grad", "tile"}
)  # fmt: skip


def test_every_rule_is_called_by_an_example() -> None:
    called: set[str] = set()

    def collect(jaxpr: Any) -> None:
        for equation in jaxpr.eqns:
            called.add(equation.primitive.name)
            for inner in inner_jaxprs(equation):
                collect(inner)

    for f, arguments in CALLS.values():
        collect(jax.make_jaxpr(f)(*arguments).jaxpr)
    assert set(RULES) - called - _NOT_CALLED == set()
