import json
from pathlib import Path

import pytest

from jitcount._explain.causes import Kind
from jitcount._show.terminal import render
from tools import score
from tools.catalogue import CATALOGUE

CASES = {case.id: case for case in CATALOGUE}


@pytest.fixture(autouse=True)
def a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.mark.parametrize("name", ["first-call", "shape", "nested-pytree", "dict-key"])
def test_jax_is_given_its_due(name: str) -> None:
    assert score.is_jax_right(CASES[name])


@pytest.mark.parametrize("name", ["shape-of-jnp-sum", "donation", "cleared-caches"])
def test_jax_is_not_given_more_than_its_due(name: str) -> None:
    assert not score.is_jax_right(CASES[name])


def test_it_is_known_of_every_kind_what_jax_would_say() -> None:
    assert set(score._JAX_SAYS) == set(Kind) - {Kind.UNKNOWN}


def test_nothing_is_printed_while_jax_explains(capfd: pytest.CaptureFixture[str]) -> None:
    score.is_jax_right(CASES["shape"])
    assert capfd.readouterr() == ("", "")


def test_the_table_adds_up() -> None:
    found = {"shape": {"jitcount": True, "jax": True}, "device": {"jitcount": True, "jax": False}}
    assert render(score.score_table(found)).splitlines()[2:] == [
        "shape       right      right",
        "device      right      –",
        "",
        "right, of 2: jitcount 2, JAX 1",
    ]


def test_kept_scores_are_shown_side_by_side_and_a_wrong_cause_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for release, ours in ("0.7.2", True), ("0.12.0", False):
        kept = {"jax": release, "score": {"shape": {"jitcount": ours, "jax": True}}}
        (tmp_path / f"{release}.json").write_text(json.dumps(kept))
    both = [str(tmp_path / "0.7.2.json"), str(tmp_path / "0.12.0.json")]
    assert score.main(["--join", both[0]]) == 0
    capsys.readouterr()
    assert score.main(["--join", *both]) == 1
    assert [line.split() for line in capsys.readouterr().out.splitlines()[2:]] == [
        ["0.7.2", "1", "1", "1"],
        ["0.12.0", "1", "0", "1"],
    ]
