"""The command: how long, which programs, what it says at the end."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.tools.hunt.test_reporting import FIND
from tools.hunt import __main__ as command
from tools.hunt.hunting import Find, Hunter
from tools.hunt.passes import Bisection


@pytest.fixture
def hunted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, Find]]:
    """What the hunter finds, each with the seed that it was asked for."""
    found: list[tuple[int, Find]] = []

    def hunt(_self: Hunter, seed: int, until: float) -> Any:
        assert until > 0
        return [find for wanted, find in found if wanted == seed]

    monkeypatch.setattr(Hunter, "hunt", hunt)
    monkeypatch.setattr(command, "run_with", lambda _path, _flags: False)
    monkeypatch.setattr(Bisection, "cures", lambda _self, _first: ("--cure",))
    return found


def run(folder: Path, seed: int = 7) -> int:
    return command.main(["1", str(seed), "--folder", str(folder)])


def test_nothing_found_is_told(
    hunted: list[tuple[int, Find]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path) == 0
    assert hunted == []
    assert "0 kinds of fault, 0 of them not recognised" in capsys.readouterr().out


def test_a_new_fault_is_kept_with_its_cure_and_fails(
    hunted: list[tuple[int, Find]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hunted.append((7, replace(FIND, cures=(), known="")))
    assert run(tmp_path, seed=8) == 0
    assert run(tmp_path, seed=7) == 1
    (file,) = (tmp_path / "seed-7").iterdir()
    assert "right with XLA_FLAGS=--cure" in file.read_text()
    assert "1 kinds of fault, 1 of them not recognised" in capsys.readouterr().out


def test_a_reported_fault_does_not_fail(
    hunted: list[tuple[int, Find]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "recognised", lambda _find, _reports: "probably jax #1")
    hunted.append((7, FIND))
    assert run(tmp_path) == 0


def test_what_does_not_come_again_does_not_fail(
    hunted: list[tuple[int, Find]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "run_with", lambda _path, _flags: True)
    hunted.append((7, FIND))
    assert run(tmp_path) == 0
    assert "in a process of its own it was right" in next(tmp_path.rglob("*.py")).read_text()


def test_every_day_has_other_programs() -> None:
    assert 20_000_000 < command.today() < 100_000_000
