"""Every primitive of `jax.lax` is in the table of operations, or is left out by name."""

from collections import defaultdict

import jax
import pytest

from jitcount._suite.cases import CASES, OPERATION_CASES
from jitcount._suite.operations import LEFT_OUT, TESTED, UNDEFINED
from tools.faulty import operations_heard

_CASES = {case.id: case for case in CASES}

# Other names of the same primitive: where arrays are varied over devices, and where they are not.
_ALSO = {"psum": ("psum_invariant", "psum2")}


def _exported() -> set[str]:
    """The names of the primitives that `jax.lax` and `jax.lax.linalg` export."""
    return {
        getattr(module, name).name
        for module in (jax.lax, jax.lax.linalg)
        for name in dir(module)
        if name.endswith("_p")
    }


def test_every_primitive_is_in_the_table_or_left_out_by_name() -> None:
    tested = {name for row in TESTED for name in row.primitives}
    assert not tested & set(LEFT_OUT)
    assert _exported() - tested - set(LEFT_OUT) == set()


def test_the_table_names_cases_that_exist_and_all_of_them() -> None:
    named = {case for row in TESTED for name in row.primitives for case in row.cases_of(name)}
    assert named <= set(_CASES)
    assert {case.id for case in OPERATION_CASES} <= named


def test_what_is_left_out_has_its_reason() -> None:
    assert all(LEFT_OUT.values())
    assert all(each.arguments and each.sentence and each.source for each in UNDEFINED)


@pytest.mark.thorough
def test_the_cases_use_the_primitives_that_the_table_says() -> None:
    heard = defaultdict(set)
    for case in (*OPERATION_CASES, _CASES["sharded-collectives-whole"], _CASES["branches"]):
        if not case.unsupported():
            with operations_heard() as operations:
                case.program()
            heard[case.id] = {operation.primitive.name for operation in operations}
    wrong = [
        (name, case)
        for row in TESTED
        for name in set(row.primitives) & _exported()
        for case in row.cases_of(name)
        if case in heard and not heard[case] & {name, *_ALSO.get(name, ())}
    ]
    assert wrong == []
