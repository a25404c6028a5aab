from __future__ import annotations

import re
from typing import TYPE_CHECKING

import jax
import numpy as np
import pytest

from jitcount._emulate.translate import RULES, NotKnownError, translate
from tests._emulate import cases, cases_of_arrays, cases_of_control
from tests._emulate.cases import Case, module, parameters

if TYPE_CHECKING:
    from tests._emulate.conftest import Run

CASES = [
    *cases.elementwise(),
    *cases_of_arrays.moving(),
    *cases_of_arrays.reducing(),
    *cases_of_control.control(),
    *cases_of_control.beside(),
    *cases_of_control.of_devices(),
    *cases_of_control.linear_algebra(),
]

_X = np.array([1, 2], np.float32)

# Opcodes that have a rule only to say by name what cannot be carried over.
REFUSED = {
    "send": "send, which speaks with the host",
    "recv": "recv, which speaks with the host",
    "infeed": "infeed, which speaks with the host",
    "outfeed": "outfeed, which speaks with the host",
    "stochastic-convert": "stochastic rounding",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_operation_computes_as_numpy_does(case: Case, run_hlo: Run) -> None:
    made = run_hlo(case.text, *case.arguments)
    assert [(each.shape, each.dtype) for each in made] == [
        (each.shape, each.dtype) for each in case.expected
    ]
    for one, other in zip(made, case.expected, strict=True):
        if case.tolerance:
            np.testing.assert_allclose(one, np.asarray(other), case.tolerance, case.tolerance)
        else:
            np.testing.assert_array_equal(one, other)


def test_every_rule_has_a_case() -> None:
    # Random bits have a test of their own, below.
    covered = {"rng-bit-generator", *REFUSED}
    for case in CASES:
        covered.update(re.findall(r" ([a-z][\w\-]*)\(", case.text))
    assert sorted(set(RULES) - covered) == []


@pytest.mark.parametrize("opcode", REFUSED)
def test_what_cannot_be_carried_over_says_so_in_words(opcode: str) -> None:
    text = module(f"{parameters(_X)}\nROOT %it = f32[2] {opcode}(%p0)")
    with pytest.raises(NotKnownError) as error:
        translate(text)
    assert str(error.value) == REFUSED[opcode]


def test_random_bits_of_a_known_algorithm_are_the_same_everywhere(run_hlo: Run) -> None:
    state = np.array([3, 4], np.uint64)
    line = "ROOT %r = (u64[2], u32[4]) rng-bit-generator(%p0), algorithm=rng_three_fry"
    text = module(f"{parameters(state)}\n{line}")
    theirs = jax.lax.rng_bit_generator(
        state, (4,), np.uint32, jax.lax.RandomAlgorithm.RNG_THREE_FRY
    )
    for one, other in zip(run_hlo(text, state), theirs, strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(NotKnownError) as error:
        translate(text.replace("rng_three_fry", "rng_default"))
    assert str(error.value) == "random bits by rng_default, which is the hardware's own"


def test_a_translation_says_the_types_that_its_main_has() -> None:
    line = "ROOT %r = (f32[2], pred[2]) tuple(%p0, %c)"
    text = module(f"{parameters(_X)}\n%c = pred[2] is-finite(%p0)\n{line}")
    found = translate(text)
    assert found.parameter_types == ("tensor<2xf32>",)
    assert found.result_types == ("tensor<2xf32>", "tensor<2xi1>")
    head = "func.func public @main(%arg0: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xi1>) {"
    assert found.text.startswith(head)


def test_what_takes_no_tuple_says_so() -> None:
    text = module(f"{parameters(_X)}\n%t = (f32[2]) tuple(%p0)\nROOT %it = f32[2] negate(%t)")
    with pytest.raises(NotKnownError) as error:
        translate(text)
    assert str(error.value) == "negate of a tuple"


def test_a_sink_takes_a_value_and_returns_nothing(run_hlo: Run) -> None:
    sink = '%sink = () custom-call(%p0), custom_call_target="dce_sink"'
    text = module(f"{parameters(_X)}\n{sink}\nROOT %it = f32[2] negate(%p0)")
    assert 'call_target_name = "dce_sink", has_side_effect = true' in translate(text).text
    if hasattr(jax.lax, "dce_sink"):  # else XLA:CPU does not know it
        (made,) = run_hlo(text, _X)
        np.testing.assert_array_equal(made, -_X)


_BOTH_ADDED = """both (a: f32[], b: s32[], c: f32[], d: s32[]) -> (f32[], s32[])
%a = f32[] parameter(0)
%b = s32[] parameter(1)
%c = f32[] parameter(2)
%d = s32[] parameter(3)
%ac = f32[] add(%a, %c)
%bd = s32[] add(%b, %d)
ROOT %t = (f32[], s32[]) tuple(%ac, %bd)"""


@pytest.mark.parametrize("element", ["f32", "s32"])
def test_a_scatter_of_two_arrays_that_begin_as_the_same_zeros(run_hlo: Run, element: str) -> None:
    # XLA:CPU itself writes these to the wrong places.
    dtype = np.float32 if element == "f32" else np.int32
    places = np.array([2, 0, 3, 0], np.int32)
    one = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
    other = (-100 * one).astype(dtype)
    lines = f"""
        {parameters(places, one, other)}
        %zero = f32[] constant(0)
        %same = {element}[] constant(0)
        %zeros = f32[4,2]{{1,0}} broadcast(%zero), dimensions={{}}
        %others = {element}[4,2]{{1,0}} broadcast(%same), dimensions={{}}
        ROOT %s = (f32[4,2], {element}[4,2]) scatter(%zeros, %others, %p0, %p1, %p2), {_TO_ROWS}
        """
    both = _BOTH_ADDED.replace("s32", element)
    made = run_hlo(module(lines, both), places, one, other)
    for found, added in zip(made, (one, other), strict=True):
        wanted = np.zeros_like(added)
        np.add.at(wanted, places, added)
        np.testing.assert_array_equal(found, wanted)


_TO_ROWS = (
    "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
    "index_vector_dim=1, to_apply=%both"
)


def test_a_scatter_of_two_arrays_of_other_bits_says_so() -> None:
    x, places = np.zeros((4, 2), np.float64), np.zeros(4, np.int32)
    line = f"ROOT %s = (f64[4,2], f64[4,2]) scatter(%p0, %p0, %p1, %p0, %p0), {_TO_ROWS}"
    text = module(f"{parameters(x, places)}\n{line}", _BOTH_ADDED.replace("f32", "f64"))
    with pytest.raises(NotKnownError) as error:
        translate(text)
    assert str(error.value) == "a scatter of f64, f64 at once"
