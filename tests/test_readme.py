"""The README's examples run, print what it says, and its commands exist."""

import contextlib
import io
import re
from typing import Any

import jax
import pytest

from jitcount.explain.causes import Kind
from jitcount.explain.hub import hub
from jitcount.ledger.environment import environment
from jitcount.suite.cases import CASES
from jitcount.targets.chips import CHIPS
from tests.helpers import ROOT

README = (ROOT / "README.md").read_text()

BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def examples() -> list[tuple[str, str]]:
    """Each Python example with the output that stands under it."""
    pairs = zip(BLOCKS, [*BLOCKS[1:], ("", "")], strict=True)
    return [
        (code, output if kind == "text" else "")
        for (language, code), (kind, output) in pairs
        if language == "python"
    ]


def without_figures(text: str) -> list[str]:
    """Lines without what differs from run to run: durations, and the widths that follow them."""
    text = re.sub(r"[\d.]+ (s|ms|µs|ns)\b", "TIME", text)
    text = re.sub(r"─+", "─", text)
    return [re.sub(r" +", " ", line).strip() for line in text.strip().splitlines()]


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="the README shows a CPU's output")
def test_examples_run_and_print_what_the_readme_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert examples()
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with hub.own_history():
        for code, expected in examples():
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(code, "train.py", "exec"), namespace)  # noqa: S102
            assert without_figures(printed.getvalue()) == without_figures(expected)


def test_the_test_command_is_what_ci_runs() -> None:
    commands = re.findall(r"^\$ (.*nox.*)$", README, re.MULTILINE)
    assert len(commands) == 2
    assert f"\n{commands[1]} " in (ROOT / ".ci" / "run").read_text()


def test_every_session_that_the_readme_names_exists() -> None:
    noxfile = (ROOT / "noxfile.py").read_text()
    named = {
        session
        for sessions in re.findall(r"nox -s ((?:[a-z-]+ ?)+)", README)
        for session in sessions.split()
    }
    assert {"tests-cpu", "bench-gpu", "lint"} <= named
    for session in named:
        kind, _, backend = session.partition("-")
        made_from = rf'Backend\(\s*"{backend}"' if backend else rf"def {kind}\("
        assert re.search(made_from, noxfile), session


def test_every_place_that_the_readme_names_is_there() -> None:
    for place in re.findall(r"`((?:src|tests|benchmarks|\.github)/[\w/.]*)`", README):
        assert (ROOT / place).exists(), place


def test_every_kind_of_cause_is_in_the_table() -> None:
    table = README.partition("| kind | it was compiled because |")[2].partition("\n\n")[0]
    firsts = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    assert {kind for cell in firsts for kind in re.findall(r"`([\w-]+)`", cell)} == set(Kind)


def test_the_releases_are_those_of_the_sessions() -> None:
    noxfile = (ROOT / "noxfile.py").read_text()
    releases = re.findall(r'^    "([\d.]+)": "3', noxfile, re.MULTILINE)
    assert releases
    assert re.findall(r"^([\d.]+) +\d+ +\d+ +\d+$", README, re.MULTILINE) == releases
    assert re.findall(r"^([\d.]+) +cpu \(cpu\): jax", README, re.MULTILINE) == releases


def test_as_many_cases_as_there_are() -> None:
    assert re.findall(r"`jitcount suite` runs (\d+) cases", README) == [str(len(CASES))]


def test_every_chip_is_named() -> None:
    (said,) = re.findall(r"lists them all: (.*?), also many", README, re.DOTALL)
    for chip in CHIPS:
        assert re.search(rf"\b{chip.name}\b", said, re.IGNORECASE), chip


def test_the_environment_is_described_as_the_readme_shows() -> None:
    shown = re.search(r"^On (.*)$", README, re.MULTILINE)
    assert shown is not None
    pattern = re.sub(r"[\d.]+", "N", str(environment()).partition(")")[2])
    if jax.default_backend() == "cpu":
        assert re.sub(r"[\d.]+", "N", shown[1].partition(")")[2]) == pattern
