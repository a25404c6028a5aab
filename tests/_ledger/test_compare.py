"""A comparison finds what it must find: each kind of change is made, and must be named."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from jitcount._ledger.compare import compare_ledgers
from jitcount._ledger.files import LedgerError
from jitcount._ledger.findings import findings
from jitcount._ledger.ledger import SCHEMA, CaseEntry, Ledger, Result, read_ledger, write_ledger
from jitcount._numerics.arrays import Array, decode, encode
from jitcount._numerics.expected import Expected, between_runs, derived, exactly


def changed(ledger: Ledger, case: str, **fields: object) -> Ledger:
    entry = msgspec.structs.replace(ledger.cases[case], **fields)
    return msgspec.structs.replace(ledger, cases=ledger.cases | {case: entry})


def with_value(ledger: Ledger, case: str, change: Callable[[np.ndarray], np.ndarray]) -> Ledger:
    first, *others = ledger.cases[case].results
    value = encode(change(decode(first.value)).astype(first.value.dtype))
    return changed(ledger, case, results=(Result(value, first.expected), *others))


def differences(one: Ledger, other: Ledger) -> list[str]:
    return [str(difference) for difference in compare_ledgers({"a": one, "b": other}).differences]


def test_a_ledger_does_not_differ_from_itself(ledger: Ledger) -> None:
    compared = compare_ledgers({"a": ledger, "b": ledger, "c": ledger})
    assert compared.differences == []
    assert {cell.state for row in compared.rows for cell in row.cells} == {"same"}


def test_what_is_written_can_be_read(ledger: Ledger, tmp_path: Path) -> None:
    write_ledger(tmp_path / "a.json", ledger)
    read = read_ledger(tmp_path / "a.json")
    assert read.environment == ledger.environment
    assert list(read.cases.items()) == sorted(ledger.cases.items())


def test_one_flipped_bit_of_an_exact_value_is_found(ledger: Ledger) -> None:
    flipped = with_value(ledger, "first-example", lambda v: np.nextafter(v, np.float32(9)))
    wrong = "the value is 6.00000048, not 6, 1 ulp apart; it must be equal to the bit"
    assert differences(ledger, flipped) == [f"first-example in b: {wrong}"]
    assert differences(flipped, ledger) == [f"first-example in a: {wrong}"]


def test_a_reduction_scaled_beyond_its_bound_is_found(ledger: Ledger) -> None:
    bound = float(ledger.cases["sum-100"].results[0].expected.bounds()[1])
    found = differences(ledger, with_value(ledger, "sum-100", lambda v: v + 2.5 * bound))
    assert [text.partition(": ")[0] for text in found] == ["sum-100 in b"]
    assert "of the bound" in found[0]


def test_what_is_possible_but_not_expected_is_a_difference(ledger: Ledger) -> None:
    likely, bound = ledger.cases["sum-10000"].results[0].expected.bounds()
    assert 2 * likely < bound
    found = differences(ledger, with_value(ledger, "sum-10000", lambda v: v + 2 * likely))
    assert [text.partition(": ")[0] for text in found] == ["sum-10000 in b"]
    assert "suspicious: 2 times what is expected of float32" in found[0]
    assert "within what is possible" in found[0]


def excused(ledger: Ledger, case: str) -> Ledger:
    (result,) = ledger.cases[case].results
    expected = msgspec.structs.replace(result.expected, may="a TPU rounds the operands")
    return changed(ledger, case, results=(Result(result.value, expected),))


def elsewhere(ledger: Ledger, device_kind: str) -> Ledger:
    where = msgspec.structs.replace(ledger.environment, device_kind=device_kind)
    return msgspec.structs.replace(ledger, environment=where)


def test_a_fault_that_a_case_excuses_shows_beside_a_ledger_of_the_same_kind(ledger: Ledger) -> None:
    good = excused(ledger, "sum-10000")
    likely, _ = good.cases["sum-10000"].results[0].expected.bounds()
    odd = with_value(good, "sum-10000", lambda v: v + 3 * likely)
    assert findings(odd.cases["sum-10000"]) == []
    (found,) = differences(good, odd)
    assert found.startswith("sum-10000 in b: it differs: the value is ")
    assert "suspicious: 1.5 times what is expected of float32" in found
    assert found.endswith(", unlike in a")


def test_between_kinds_the_excuse_holds_but_not_between_two_of_the_second_kind(
    ledger: Ledger,
) -> None:
    good = excused(ledger, "sum-10000")
    likely, _ = good.cases["sum-10000"].results[0].expected.bounds()
    odd = elsewhere(with_value(good, "sum-10000", lambda v: v + 3 * likely), "TPU v5e")
    assert differences(good, odd) == []
    found = compare_ledgers({"a": good, "b": elsewhere(good, "TPU v5e"), "c": odd}).differences
    assert [(one.case, one.ledger) for one in found] == [("sum-10000", "c")]
    assert found[0].text.endswith(", unlike in b")


def test_a_reduction_within_its_bound_is_near(ledger: Ledger) -> None:
    near = with_value(ledger, "sum-100", lambda v: np.nextafter(v, np.float32(100)))
    compared = compare_ledgers({"a": ledger, "b": near})
    assert compared.differences == []
    cell = next(row.cells[1] for row in compared.rows if row.case == "sum-100")
    assert (cell.state, cell.ulps) == ("near", 1)


def test_another_dtype_is_neither_the_same_nor_other_bits(ledger: Ledger) -> None:
    """With x64 on, JAX's whole numbers have 64 bits."""
    whole = encode(np.array(6, np.int32))
    entry = CaseEntry(results=(Result(whole, exactly(np.array(6, np.int32))),))
    wide = CaseEntry(results=(Result(encode(np.array(6, np.int64)), entry.results[0].expected),))
    x32, x64 = (msgspec.structs.replace(ledger, cases={"whole": each}) for each in (entry, wide))
    compared = compare_ledgers({"x32": x32, "x64": x64, "again": x64, "back": x32})
    assert compared.differences == []
    (row,) = compared.rows
    assert [(cell.state, cell.dtype) for cell in row.cells] == [
        ("same", ""),
        ("other dtype", "int64"),
        ("other dtype", "int64"),
        ("same", ""),
    ]
    assert compared.changes(1)[:2] == (0, 0)
    assert compared.changed == {"x64": [], "again": [], "back": []}


def test_another_compile_is_found(ledger: Ledger) -> None:
    compiles = ledger.cases["first-example"].compiles
    more = changed(ledger, "first-example", compiles=(*compiles, compiles[0]))
    assert differences(ledger, more) == [
        "first-example in b: compiled sum 3, add 1, not sum 2, add 1"
    ]


def test_a_count_that_nobody_expects_is_held_against_the_first_ledgers(ledger: Ledger) -> None:
    """As in the ledgers of a pytest run, or of any program."""
    compiles = ledger.cases["first-example"].compiles
    one = changed(ledger, "first-example", expected_compiles=None)
    more = changed(one, "first-example", compiles=(*compiles, compiles[0]))
    assert differences(one, more) == [
        "first-example in b: compiled sum 3, add 1, against sum 2, add 1 in a"
    ]


def test_results_within_their_bounds_but_not_of_each_other_are_found(ledger: Ledger) -> None:
    first = ledger.cases["sum-100"].results[0]
    _, bound = first.expected.bounds()
    shifted = msgspec.structs.replace(
        first.expected, reference=encode(decode(first.expected.reference) + 3 * bound)
    )
    value = encode((decode(first.value) + 3 * bound).astype(np.float32))
    other = changed(ledger, "sum-100", results=(Result(value, shifted),))
    assert differences(ledger, other) == ["sum-100 in b: it is declared otherwise, unlike in a"]


def test_a_missing_case_is_found_unless_it_is_declared_unsupported(ledger: Ledger) -> None:
    cases = {case: entry for case, entry in ledger.cases.items() if case != "exp"}
    fewer = msgspec.structs.replace(ledger, cases=cases)
    assert differences(ledger, fewer) == ["exp in b: is missing"]
    assert differences(fewer, ledger) == ["exp in a: is missing"]
    declared = msgspec.structs.replace(
        ledger, cases=cases | {"exp": CaseEntry(unsupported="no exponentials here")}
    )
    assert differences(ledger, declared) == []


def test_a_case_that_raised_is_a_difference(ledger: Ledger) -> None:
    failed = changed(ledger, "exp", error="XlaRuntimeError: no", results=(), compiles=())
    assert differences(ledger, failed) == ["exp in b: it raised XlaRuntimeError: no"]


def test_a_bound_that_one_ledger_widened_is_found(ledger: Ledger) -> None:
    first = ledger.cases["sum-100"].results[0]
    likely, bound = (encode((2 * one).astype(np.float32)) for one in first.expected.bounds())
    for wider in ({"likely": likely}, {"bound": bound}):
        expected = msgspec.structs.replace(first.expected, **wider)
        loose = changed(ledger, "sum-100", results=(Result(first.value, expected),))
        assert differences(ledger, loose) == ["sum-100 in b: it is declared otherwise, unlike in a"]


def test_why_a_backend_may_be_further_off_is_its_own_matter(ledger: Ledger) -> None:
    first = ledger.cases["sum-100"].results[0]
    expected = msgspec.structs.replace(first.expected, may="of old age")
    loose = changed(ledger, "sum-100", results=(Result(first.value, expected),))
    assert differences(ledger, loose) == []


def test_without_jit_counts_are_not_compared(ledger: Ledger) -> None:
    config = ledger.environment.config | {"jax_disable_jit": "True"}
    where = msgspec.structs.replace(ledger.environment, config=config)
    entry = msgspec.structs.replace(ledger.cases["exp"], compiles=(), expected_compiles=None)
    eager = msgspec.structs.replace(ledger, environment=where, cases=ledger.cases | {"exp": entry})
    assert differences(ledger, eager) == []


_SCHEMA = b'"schema": %d'


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "is not JSON, or is cut short: "),
        (lambda _: b"", "is not JSON, or is cut short: "),
        (lambda _: b"[]", "is not a jitcount ledger"),
        (lambda text: text.replace(b"jitcount ledger", b"other"), "is not a jitcount ledger"),
        (
            lambda text: text.replace(_SCHEMA % SCHEMA, _SCHEMA % (SCHEMA + 1)),
            f"has schema {SCHEMA + 1}; this jitcount reads {SCHEMA}; a newer jitcount wrote it",
        ),
        (
            lambda text: text.replace(_SCHEMA % SCHEMA, _SCHEMA % (SCHEMA - 1)),
            (
                f"has schema {SCHEMA - 1}; this jitcount reads {SCHEMA}; "
                "an older jitcount wrote it: make it anew with this one"
            ),
        ),
        (
            lambda text: text.replace(b'"dtype": "float32"', b'"dtype": "float31"'),
            "is a jitcount ledger that has been damaged: ",
        ),
        (
            lambda text: text.replace(b'"platform"', b'"platfrom"', 1),
            "is a jitcount ledger that has been damaged: ",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_one_line(
    ledger: Ledger, tmp_path: Path, damage: Callable[[bytes], bytes], message: str
) -> None:
    path = tmp_path / "a.json"
    write_ledger(path, ledger)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(LedgerError) as raised:
        read_ledger(path)
    assert str(raised.value).startswith(f"{path}: {message}")
    assert "\n" not in str(raised.value)


def test_a_bound_must_be_finite_and_fit_its_reference() -> None:
    number = encode(np.array(1.0))

    def refused(numerics: str, likely: Array | None, bound: Array | None, may: str = "") -> str:
        with pytest.raises(ValueError, match=r".") as raised:
            Expected(
                numerics=numerics,
                dtype="float32",
                reference=number,
                likely=likely,
                bound=bound,
                may=may,
            )
        return str(raised.value)

    good = encode(np.array(1, np.float32))
    for bad in (np.inf, np.nan, -1.0):
        one = encode(np.array(bad, np.float32))
        assert refused("reduction", good, one) == "a bound that is negative or not finite"
        assert refused("reduction", one, good) == "a bound that is negative or not finite"
    pair = encode(np.zeros(2, np.float32))
    assert refused("reduction", pair, good) == "a bound of another shape than its reference"
    assert refused("reduction", good, number) == "a bound of dtype float64, not float32"
    assert refused("reduction", good, None) == "a bound of dtype None, not float32"
    assert refused("hoped", good, good) == "an unknown class of numerics 'hoped'"
    assert refused("exact", good, good) == "an exact result with a bound"
    assert refused("exact", None, None, "of old age") == "an exact result with a bound"


# --- Users' functions -----------------------------------------------------------------------------


def own(ledger: Ledger, *results: Result, case: str = "own", **fields: object) -> Ledger:
    """A ledger of one case of a user's."""
    entry = msgspec.structs.replace(CaseEntry(results=results), **fields)
    return msgspec.structs.replace(ledger, cases={case: entry})


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def derived_result(value: np.ndarray, *widths: float, why: str = "") -> Result:
    expected = derived("float32", np.array([1.0, 2.0]), np.array(widths), why)
    return Result(encode(value), expected)


def test_each_ledger_is_allowed_the_tolerance_that_it_derived(ledger: Ledger) -> None:
    low = own(ledger, derived_result(floats(0.75, 2), 0.25, 0))
    high = own(ledger, derived_result(floats(1.5, 2), 0.5, 0))
    assert differences(low, high) == []
    (row,) = compare_ledgers({"a": low, "b": high}).rows
    assert ([cell.state for cell in row.cells], row.share) == (["same", "near"], 1.0)


def test_two_results_can_each_hold_and_not_be_together(ledger: Ledger) -> None:
    """Where the references themselves are apart, by the release of JAX or the platform."""
    low = own(ledger, derived_result(floats(0.75, 2), 0.25, 0))
    expected = derived("float32", np.array([2.0, 2.0]), np.array([0.25, 0]))
    high = own(ledger, Result(encode(floats(2, 2)), expected))
    assert differences(low, high) == [
        (
            "own in b: it differs: [0] is 2, not 0.75, 12,582,912 ulps apart; "
            "2.5 times both derived tolerances, 0.5, unlike in a"
        )
    ]


def test_what_has_no_tolerance_is_said_and_not_judged(ledger: Ledger) -> None:
    why = "the branch at f.py:3 flips in 3 of 8 draws"
    one = own(ledger, derived_result(floats(1, 2), 0.5, np.nan, why=why))
    other = own(ledger, derived_result(floats(1, 9), 0.5, np.nan, why=why))
    compared = compare_ledgers({"a": one, "b": other})
    assert compared.differences == []
    (row,) = compared.rows
    assert [cell.state for cell in row.cells] == ["same", "unjudged"]
    remark = f"1 of 2 elements has no tolerance, and is not judged: {why}"
    assert row.remarks == [remark]
    shown = str(compared)
    assert f"own: {remark}" in shown
    assert "? other numbers, where no tolerance exists: not judged" in shown
    assert compared.to_dict()["cases"]["own"]["remarks"] == [remark]


def declared_result(value: np.ndarray, share: float = 1e-3) -> Result:
    return Result(encode(value), between_runs(value, share, "float() of it at f.py:3"))


def test_what_cannot_be_derived_is_held_to_what_is_declared_and_says_so(ledger: Ledger) -> None:
    one, near, far = (own(ledger, declared_result(floats(8, x))) for x in (1, 1.004, 1.5))
    assert differences(one, near) == []
    compared = compare_ledgers({"a": one, "b": near})
    assert compared.rows[0].share == pytest.approx(0.5, rel=1e-3)
    assert compared.rows[0].remarks == [
        (
            "within 0.001 of the largest magnitude between runs, as declared, not derived: "
            "float() of it at f.py:3"
        )
    ]
    assert differences(one, far) == [
        (
            "own in b: it differs: [1] is 1.5, not 1, 4,194,304 ulps apart; "
            "62.5 times the declared 0.001 of the largest magnitude, 0.008, unlike in a"
        )
    ]
    assert differences(one, own(ledger, declared_result(floats(8, 1), 1e-2))) == [
        "own in b: it is declared otherwise, unlike in a"
    ]


def test_other_shapes_and_other_results_are_differences(ledger: Ledger) -> None:
    one = own(ledger, declared_result(floats(1, 2)))
    assert differences(one, own(ledger, declared_result(floats(1)))) == [
        "own in b: it differs: the shape is (1,), not (2,), unlike in a"
    ]
    named = [msgspec.structs.replace(declared_result(floats(1)), name=name) for name in "wvw"]
    assert differences(own(ledger, *named[:2]), own(ledger, *named[1:])) == [
        "own in b: result 0 (v) is called w, unlike in a",
        "own in b: result 1 (w) is called v, unlike in a",
    ]


def test_tests_that_keep_results_are_compared_program_by_program_too(ledger: Ledger) -> None:
    compiles = ledger.cases["first-example"].compiles
    one, other = (
        own(ledger, declared_result(floats(x)), case="t.py::test", shares_caches=True, compiles=c)
        for x, c in ((1, compiles), (2, compiles[:1]))
    )
    empty = CaseEntry(shares_caches=True)
    one, other = (
        msgspec.structs.replace(each, cases=each.cases | {name: empty})
        for each, name in ((one, "t.py::one"), (other, "t.py::other"))
    )
    compared = compare_ledgers({"a": one, "b": other})
    assert next(str(each) for each in compared.differences).startswith(
        "t.py::test in b: it differs"
    )
    assert [(each.case, each.ledger) for each in compared.differences] == [
        ("t.py::test", "b")
    ] * len(compared.differences)
    assert [row.case for row in compared.rows] == ["t.py::test"]
    assert {each.kind.value for each in compared.program_changes} <= {"gone", "compiles"}
    assert len(compared.program_changes) == len(compared.differences) - 1
    assert str(compared).count(str(compared.program_changes[0])) == 1
