"""What a user's function returns, whatever that is, and how its case is run and judged."""

from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import jitcount
from jitcount._ledger.findings import findings, remarks
from jitcount._ledger.ledger import CaseEntry
from jitcount._suite import own_cases, returned
from jitcount._suite.case import run_case
from jitcount._suite.returned import named_arrays, suite_case
from jitcount._tolerance.tolerance import ExpectedResult
from tests import stand_in


@pytest.fixture(autouse=True)
def derived_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(returned, "tolerance", stand_in.tolerance)


def run(f: Any, *args: Any, **options: Any) -> CaseEntry:
    """Run a function as a case, with these arguments."""
    jitcount.case(f, args, **options)
    return run_case(suite_case(own_cases._declared[-1]))


# --- What is returned -----------------------------------------------------------------------------

Pair = namedtuple("Pair", ["first", "second"])  # noqa: PYI024 (a pytree that names its fields)


def test_every_leaf_has_a_name_and_the_dtype_that_jax_has() -> None:
    result = {
        "none": None,
        "scalars": (True, 2, 1.5, 1j),
        "numpy": [np.float64(0.5), np.arange(2, dtype=np.int64), np.ones(2)],
        "jax": Pair(jnp.ones(2, jnp.bfloat16), jnp.zeros((0, 3), jnp.uint8)),
        "key": jax.random.key(7),
    }
    found = {name: (value.dtype.name, value.shape) for name, value in named_arrays(result).items()}
    assert found == {
        "['scalars'][0]": ("bool", ()),
        "['scalars'][1]": ("int64", ()),
        "['scalars'][2]": ("float32", ()),
        "['scalars'][3]": ("complex64", ()),
        "['numpy'][0]": ("float32", ()),
        "['numpy'][1]": ("int64", (2,)),
        "['numpy'][2]": ("float32", (2,)),
        "['jax'].first": ("bfloat16", (2,)),
        "['jax'].second": ("uint8", (0, 3)),
        "['key']": ("uint32", (2,)),
    }
    assert list(named_arrays(jnp.ones(2))) == [""]


def test_what_is_no_array_or_in_no_ledger_is_a_sentence() -> None:
    remedy = "and no array: return arrays alone"
    with pytest.raises(TypeError, match=rf"^its result \['a'\] is a str, {remedy}$"):
        named_arrays({"a": "text"})
    with pytest.raises(TypeError, match=rf"^its result is a object, {remedy}$"):
        named_arrays(object())
    narrow = np.zeros(2, ml_dtypes.float8_e4m3fn)
    message = r"^its result has the dtype float8_e4m3fn, which no ledger holds$"
    with pytest.raises(TypeError, match=message):
        named_arrays(narrow)


# --- A case ---------------------------------------------------------------------------------------


@jax.jit
def step(w: jax.Array) -> dict[str, Any]:
    return {"w": 2 * w, "n": w.sum().astype(int)}


ONES = np.ones(3, np.float32)


def test_a_case_holds_with_names_compiles_and_its_own_tolerance() -> None:
    entry = run(step, ONES, compiles={"step": 1})
    assert findings(entry) == remarks(entry) == []
    assert [(r.name, r.expected.numerics, r.expected.dtype) for r in entry.results] == [
        ("['n']", "derived", "int32"),
        ("['w']", "derived", "float32"),
    ]
    assert entry.counts() == entry.expected_compiles == {"step": 1}
    assert not entry.shares_caches


def test_what_is_compiled_to_derive_a_tolerance_is_not_the_cases() -> None:
    def f(x: np.ndarray) -> jax.Array:
        jax.clear_caches()  # the stand-in calls it again
        return step(x)["w"]

    assert run(f, ONES, compiles={"step": 1}).counts() == {"step": 1}


def test_another_count_and_another_result_are_found() -> None:
    def wrong(x: np.ndarray) -> jax.Array:
        return step(x)["w"]

    entry = run(wrong, ONES, compiles={"step": 2})
    assert findings(entry) == [
        "[0] is 2, not 3, 4,194,304 ulps apart; 5e+05 times the derived tolerance 2e-06",
        "compiled step 1, not step 2",
    ]


def test_keys_are_held_to_their_data(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_keys(*_: object, **__: object) -> object:
        data = np.array([0, 7], np.uint32)
        one = ExpectedResult("", "key<fry>", data, np.zeros(2), "")
        return SimpleNamespace(results=(one,))

    monkeypatch.setattr(returned, "tolerance", of_keys)
    assert findings(run(jax.random.key, 7)) == []
    assert findings(run(jax.random.key, 8)) == [
        "[1] is 8, not 7, 1 ulp apart; it must be equal to the bit"
    ]


def test_without_a_count_none_is_expected() -> None:
    assert run(step, ONES).expected_compiles is None
    with jax.disable_jit():
        assert run(step, ONES, compiles={"step": 1}).expected_compiles is None


def test_an_element_without_a_tolerance_is_named_and_counted() -> None:
    def flips(x: np.ndarray) -> dict[str, jax.Array]:
        return {"a": step(x)["w"]}

    (line,) = remarks(run(flips, ONES))
    assert line == (
        "1 of 3 elements has no tolerance, and is not judged: "
        "the branch at cases.py:9 flips in 3 of 8 draws"
    )


def test_what_looks_at_values_is_called_once_and_held_to_what_is_declared() -> None:
    calls = []

    def host(x: jax.Array) -> dict[str, Any]:
        calls.append(x)
        return {"x": x * float(x.sum()), "n": len(calls), "narrow": x.astype(jnp.bfloat16)}

    entry = run(host, jnp.ones(3), within=1e-3)
    assert len(calls) == 1
    assert findings(entry) == []
    assert {r.name: (r.expected.numerics, r.expected.within) for r in entry.results} == {
        "['n']": ("declared between runs", 0.0),
        "['narrow']": ("declared between runs", 1e-3),
        "['x']": ("declared between runs", 1e-3),
    }
    assert remarks(entry) == [
        (
            "within 0.001 of the largest magnitude between runs, as declared, not derived: "
            "float() of a traced value at cases.py:9"
        )
    ]


def test_by_default_a_hundred_thousandth_is_declared_or_a_step_of_a_narrow_type() -> None:
    def host(x: jax.Array) -> dict[str, Any]:
        return {"a": x, "b": x.astype(jnp.bfloat16), "c": x.astype(jnp.float16)}

    entry = run(host, jnp.ones(3))
    assert [r.expected.within for r in entry.results] == [1e-5, 2.0**-7, 2.0**-10]


def test_a_case_that_tests_nothing_says_so_and_a_count_is_something() -> None:
    def nothing() -> None:
        step(ONES)

    assert findings(run(nothing)) == [
        (
            "it raised ValueError: it returns no array, and so nothing would be tested: "
            "return what must be the same, or say what it compiles"
        )
    ]
    assert findings(run(nothing, compiles={"step": 1})) == []


def test_a_donated_argument_is_a_sentence_and_a_numpy_array_can_be_donated() -> None:
    donating = jax.jit(lambda x: x + 1, donate_argnums=0)
    assert run(donating, jnp.ones(3)).error == (
        "ValueError: its argument [0] was donated, and is gone after one call: "
        "give a NumPy array, of which each call makes one"
    )
    assert findings(run(donating, ONES)) == []


def test_arguments_can_be_made_when_the_case_is_run_and_again_when_they_were_donated() -> None:
    made = []

    def make() -> tuple[jax.Array]:
        made.append(1)
        return (jnp.ones(3) + len(made) * 0,)

    donating = jax.jit(lambda x: x + 1, donate_argnums=0)
    jitcount.case(donating, make, compiles={"<lambda>": 1})
    assert made == []
    assert findings(run_case(suite_case(own_cases._declared[-1]))) == []
    assert len(made) > 1
    not_a_tuple: Any = ONES
    jitcount.case(step, lambda: not_a_tuple)
    assert run_case(suite_case(own_cases._declared[-1])).error == (
        "TypeError: what makes its arguments must return a tuple of them, not a ndarray"
    )


def test_what_is_raised_is_the_cases_own() -> None:
    def raises() -> None:
        raise RuntimeError("no such\nthing")

    assert run(raises).error == "RuntimeError: no such thing"


def test_a_tolerance_that_cannot_be_derived_for_another_reason_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(returned, "tolerance", broken)
    entry = run(step, ONES)
    assert entry.error == "RuntimeError: out of memory, when what it must return was derived"
    assert entry.counts() == {"step": 1}


def test_in_several_processes_what_cannot_be_derived_is_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("spans non-addressable devices")

    monkeypatch.setattr(returned, "tolerance", broken)
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    entry = run(step, ONES)
    assert not entry.error
    assert remarks(entry) == [
        (
            "within 1e-05 of the largest magnitude between runs, as declared, not derived: "
            "nothing is derived in 2 processes: RuntimeError: spans non-addressable devices"
        )
    ]


def test_a_later_call_that_differs_is_found() -> None:
    calls = []

    def drifts(x: np.ndarray) -> jax.Array:
        calls.append(x)
        return step(x * len(calls))["w"]

    entry = run(drifts, ONES)
    assert entry.unsteady.startswith("call 2: [0] is 6, not 4" if len(calls) > 2 else "call 2: ")


@pytest.mark.two_devices
def test_a_result_on_several_devices_is_whole() -> None:
    mesh = jax.make_mesh((2,), ("x",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))

    def sharded() -> jax.Array:
        return step(jax.device_put(np.arange(4, dtype=np.float32), sharding))["w"]

    entry = run(sharded, compiles={"step": 1})
    assert findings(entry) == []
    assert entry.results[0].value.shape == (4,)
