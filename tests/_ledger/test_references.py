"""The file of references: a line for a result, and nothing of other tests is lost."""

import json
from pathlib import Path

import numpy as np
import pytest

from jitcount._ledger.files import LedgerError
from jitcount._ledger.references import OfTest, read_references, update_references
from jitcount._numerics.expected import between_runs, derived


def of(*values: float) -> OfTest:
    """What a test returns that calls ``same`` once."""
    return {"step": {"": between_runs(np.array(values, np.float32), 1e-3, "float() at a.py:3")}}


def nothing_is_gone(_: str) -> bool:
    return False


def test_what_is_written_can_be_read_without_the_reasons(tmp_path: Path) -> None:
    path = tmp_path / "same.json"
    widths = np.array([1e-6, np.nan])
    partly = derived("float32", np.array([0.1, 2.0]), widths, "the branch at a.py:3 flips")
    call = 'a "name"\n'
    assert update_references(path, {"t.py::b": {call: {"['w']": partly}}}, nothing_is_gone) == (
        "+1 −0 ~0"
    )
    (read,) = read_references(path).tests["t.py::b"][call].values()
    assert (read.why, read.left_out(), read.reference) == ("", 1, partly.reference)
    assert json.loads(path.read_text())["kind"] == "jitcount reference file"


def test_a_result_is_a_line_and_tests_are_in_order(tmp_path: Path) -> None:
    path = tmp_path / "same.json"
    update_references(path, {"t.py::b": of(1), "t.py::a": of(2), "t.py::none": {}}, nothing_is_gone)
    assert [line[:32] for line in path.read_text().splitlines()] == [
        "{",
        ' "kind": "jitcount reference fil',
        ' "schema": 1,',
        ' "tests": {',
        '  "t.py::a": {',
        '   "step": {',
        '    "": {"numerics":"declared be',
        "   }",
        "  },",
        '  "t.py::b": {',
        '   "step": {',
        '    "": {"numerics":"declared be',
        "   }",
        "  }",
        " }",
        "}",
    ]


def test_what_was_not_measured_stays_unless_it_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "same.json"
    update_references(path, {"a": of(1), "b": of(2), "c": of(3)}, nothing_is_gone)
    changed = update_references(path, {"a": of(9), "d": of(4)}, {"b"}.__contains__)
    assert changed == "+1 −1 ~1"
    assert [*read_references(path).tests] == ["a", "c", "d"]
    assert update_references(path, {"a": {}, "c": {}, "d": {}}, nothing_is_gone) == "+0 −3 ~0"
    assert read_references(path).tests == {}


def test_no_file_is_made_of_nothing_and_none_of_others_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "same.json"
    assert update_references(path, {"a": {}}, nothing_is_gone) == "+0 −0 ~0"
    assert not path.exists()
    assert read_references(path).tests == {}
    path.write_text("{}")
    with pytest.raises(LedgerError) as raised:
        update_references(path, {"a": of(1)}, nothing_is_gone)
    assert str(raised.value) == f"{path}: is not a jitcount reference file; it is left as it is"
