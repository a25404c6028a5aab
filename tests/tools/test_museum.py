"""The table of releases by miscompiles, from the ledgers of runs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import jax
import pytest

from jitcount._ledger.ledger import read_ledger, write_ledger
from jitcount._miscompiles.known import jaxlib_release
from jitcount._suite.case import Case, exactly_these
from jitcount._suite.running import run_suite
from tools import museum

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The ledger of two cases of the museum, run here."""
    monkeypatch.setattr(museum, "cases", lambda: ["loop-steps", "constant-gather"])
    assert museum.main(["--ledger", str(tmp_path / "here.json")]) == 0
    return tmp_path / "here.json"


def test_what_was_kept_is_shown_and_is_as_known(
    ledger: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    release = jaxlib_release()
    monkeypatch.setattr(museum, "RELEASES", (release,))
    assert museum.main([str(ledger)]) == 0
    expected = museum.expected_standings([release])
    assert capsys.readouterr().out == f"{museum.table(expected)}\nas is known\n"


def test_a_case_that_is_not_as_known_is_a_difference(
    ledger: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    release = jaxlib_release()
    other = {museum.WRONG: museum.RIGHT, museum.RIGHT: museum.WRONG}
    is_now = museum.expected_standings([release])[release]["loop-steps"]
    known = {release: {"loop-steps": other[is_now], "constant-gather": museum.RIGHT}}
    monkeypatch.setattr(museum, "expected_standings", lambda _: known)
    assert museum.main([str(ledger)]) == 1
    said = f"JAX {release}, loop-steps: {is_now} and not {other[is_now]}\n"
    assert capsys.readouterr().out.endswith(said)


def test_a_case_that_cannot_run_is_neither_right_nor_wrong(tmp_path: Path) -> None:
    case = Case(
        id="a",
        claim="",
        program=lambda: [jax.device_put(1)],
        expected=exactly_these(1),
        compiles={},
        unsupported=lambda: "too new",
    )
    path = tmp_path / "a.json"
    write_ledger(path, run_suite([case], after=lambda *_: None))
    assert museum._standings(path) == (jaxlib_release(), {"a": museum.UNKNOWN})
    right = dataclasses.replace(case, unsupported=lambda: "")
    write_ledger(path, run_suite([right], after=lambda *_: None))
    assert museum._standings(path)[1] == {"a": museum.RIGHT}
    assert read_ledger(path).cases["a"].known_wrong == ""
