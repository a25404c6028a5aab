"""A thousand random changes of a ledger: each is a difference, or one clear line, or harmless."""

import copy
import json
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jitcount._ledger import files
from jitcount._ledger.budget import read_budget, update_budget
from jitcount._ledger.compare import compare_ledgers
from jitcount._ledger.files import LedgerError
from jitcount._ledger.ledger import Ledger, read_ledger, write_ledger
from jitcount._numerics.arrays import encode
from jitcount._show.comparison_table import comparison_tables
from jitcount._show.terminal import render

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from([[], {}, [1], {"a": 1}, "exact", "reduction", "float32", "0000c03f", 1e308]),
)


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to everything in a JSON document."""
    keys = (
        tree.keys()
        if isinstance(tree, dict)
        else range(len(tree))
        if isinstance(tree, list)
        else ()
    )
    return [p for key in keys for p in [(*path, key), *places(tree[key], (*path, key))]]


def mutate(tree: Any, data: st.DataObject) -> None:
    """Change one place of a document: another value, another digit, nothing, twice the same."""
    *way, last = data.draw(st.sampled_from(places(tree)))
    for key in way:
        tree = tree[key]
    old = tree[last]
    kind = data.draw(st.sampled_from(["digit", "digit", "digit", "junk", "drop", "double"]))
    if kind == "digit" and isinstance(old, str) and old:
        place = data.draw(st.integers(0, len(old) - 1))
        tree[last] = old[:place] + data.draw(st.sampled_from("0123456789abcdef")) + old[place + 1 :]
    elif kind == "drop":
        del tree[last]
    elif kind == "double" and isinstance(tree, list):
        tree.append(copy.deepcopy(old))
    else:
        tree[last] = copy.deepcopy(data.draw(JUNK))  # the next change may be inside of it


def harm(before: Any, after: Any) -> str:
    """What a reader must be told of; worked out without the code that is tested."""
    if before["cases"].keys() != after["cases"].keys():
        return "other cases"
    for case, entry in before["cases"].items():
        other = after["cases"][case]
        if other.get("unsupported"):
            continue
        if functions(entry) != functions(other):
            return f"other compiles in {case}"
        for one, two in zip(entry["results"], other.get("results", []), strict=False):
            if is_beyond(one["value"], two["value"], one["expected"]):
                return f"another value in {case}"
        if len(entry["results"]) != len(other.get("results", [])):
            return f"more or fewer results in {case}"
    return ""


def functions(entry: Any) -> list[str]:
    made = [c["function"] for c in entry.get("compiles", []) if not c["from_disk"]]
    return sorted(made)


def numbers(array: Any) -> np.ndarray:
    kinds = {"bool": "?", "bfloat16": "<u2"}
    raw = np.frombuffer(bytes.fromhex(array["data"]), kinds.get(array["dtype"], array["dtype"]))
    return raw.view(raw.real.dtype) if raw.dtype.kind == "c" else raw


def is_beyond(value: Any, other: Any, expected: Any) -> bool:
    one, two = numbers(value), numbers(other)
    if one.shape != two.shape:
        return True
    if expected["numerics"] == "exact":
        both_nan = np.isnan(one.astype(float)) & np.isnan(two.astype(float))
        return bool(np.any((one != two) & ~both_nan))
    reference, bound = numbers(expected["reference"]), numbers(expected["likely"])
    off = np.abs(two.astype(np.float64) - reference)
    return bool(np.any(~(off <= bound * (1 + 1e-9))))


@pytest.fixture(scope="module")
def document(ledger: Ledger) -> Any:
    return json.loads(files.encode(ledger))


@pytest.mark.thorough
@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_change_of_a_ledger_passes_in_silence_or_ends_in_a_traceback(
    data: st.DataObject, ledger: Ledger, document: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "mutated.json"
    changed = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 2))):
        mutate(changed, data)
    path.write_text(json.dumps(changed), encoding="utf-8", errors="surrogatepass")
    try:
        mutated = read_ledger(path)
    except LedgerError as error:
        assert "\n" not in str(error)  # noqa: PT017 (it need not be raised)
        return
    both = {"a": ledger, "b": mutated}
    if data.draw(st.booleans()):
        both = {"b": mutated, "a": ledger}
    compared = compare_ledgers(both)
    assert render(comparison_tables(compared))
    if not compared.differences:
        assert harm(document, changed) == ""


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_no_broken_file_ends_in_a_traceback(
    data: st.DataObject, ledger: Ledger, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "broken.json"
    path.unlink(missing_ok=True)  # the last one: it is not written over
    write_ledger(path, ledger)
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content = content[:place]
    else:
        content[place] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    try:
        read = read_ledger(path)
    except LedgerError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        compare_ledgers({"a": ledger, "b": read})


BUDGET = {
    "kind": "jitcount budget",
    "schema": 1,
    "jax": "0.10.2",
    "tests": {"a.py::test_one": {"step": 1, "add": 2}, "a.py::test_two[x-::]": {"step": 3}},
}


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_budget_is_damaged_by_an_update(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What cannot be read is one line, and stays as it is; else only one test changes."""
    path = tmp_path_factory.getbasetemp() / "mutated_budget.json"
    changed: Any = copy.deepcopy(BUDGET)
    for _ in range(data.draw(st.integers(0, 2))):
        mutate(changed, data)
    before = json.dumps(changed).encode("utf-8", "surrogatepass")
    if data.draw(st.integers(0, 3)) == 0:
        before = before[: data.draw(st.integers(0, len(before)))]
    path.write_bytes(before)
    try:
        change = update_budget(path, {"a.py::test_new": {"f": 1}}, lambda _: False)
    except LedgerError as error:
        assert "\n" not in str(error)  # noqa: PT017 (it need not be raised)
        assert path.read_bytes() == before
        return
    kept = {test: counts for test, counts in json.loads(before)["tests"].items() if counts}
    assert read_budget(path).tests == kept | {"a.py::test_new": {"f": 1}}
    assert str(change).startswith("+1 ")


def test_a_reference_that_its_dtype_does_not_hold_is_a_difference(ledger: Ledger) -> None:
    (result,) = ledger.cases["sum-100"].results
    huge = msgspec.structs.replace(result.expected, reference=encode(np.array(1e300)))
    entry = msgspec.structs.replace(
        ledger.cases["sum-100"], results=(msgspec.structs.replace(result, expected=huge),)
    )
    other = msgspec.structs.replace(ledger, cases=ledger.cases | {"sum-100": entry})
    found = [
        str(difference) for difference in compare_ledgers({"a": ledger, "b": other}).differences
    ]
    assert found[0].startswith("sum-100 in b: the value is 5.43900299, not inf; ")


def test_the_measure_of_harm_finds_harm(document: Any) -> None:
    """The test's own judge is no rubber stamp."""
    for what in ("compiles", "results"):
        changed = copy.deepcopy(document)
        changed["cases"]["exp"][what] = []
        assert harm(document, changed)
    changed = copy.deepcopy(document)
    del changed["cases"]["exp"]
    assert harm(document, changed) == "other cases"
    changed = copy.deepcopy(document)
    value = changed["cases"]["exp"]["results"][0]["value"]
    value["data"] = "0000c03f" + value["data"][8:]
    assert harm(document, changed) == "another value in exp"
