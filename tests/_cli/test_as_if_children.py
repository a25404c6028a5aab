"""Processes that a program starts under ``run --as-if`` compute as it does, and are reported."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest

from jitcount._cli import children
from jitcount._emulate.emulator import Emulator
from jitcount._emulate.result import EmulatedProgram, Emulation
from jitcount._show.emulation_table import EmulationSums, sums_table
from jitcount._show.terminal import render
from jitcount._targets.names import parse
from tests.helpers import ROOT, jitcount

WORK = """
import jax, numpy as np

def work(n):
    x, y = np.full((8, 100), 0.01, np.float32), np.ones((100, 8), np.float32)
    return float(jax.jit(lambda a, b: (a @ b).max())(x, y))
"""

POOL = """
import multiprocessing, sys
from work import work

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:  # whose workers are killed
        print(pool.apply_async(work, (3,)).get(timeout=500))
"""

# It does not import JAX itself.
COMMAND = """
import subprocess, sys
command = [sys.executable, *sys.argv[1:], "-c", "from work import work; print(work(1))"]
print(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
"""

THERE, HERE = 1.0009765625, 1.0000001192092896


@pytest.fixture
def start(tmp_path: Path) -> dict[str, str]:
    """An environment in which Python reads our lines at its start, wherever these stand."""
    (tmp_path / "first").mkdir()
    source = str(ROOT / "src")
    (tmp_path / "first" / "sitecustomize.py").write_text(
        f"import site\nsite.addsitedir({source!r})"
    )
    (tmp_path / "work.py").write_text(WORK)
    (tmp_path / "pool.py").write_text(POOL)
    (tmp_path / "command.py").write_text(COMMAND)
    places = [str(tmp_path / "first"), str(tmp_path), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, places)), "TMPDIR": str(tmp_path)}


@pytest.mark.aot("tpu:v5e")
@pytest.mark.parametrize(
    "words", [("pool.py", "spawn"), ("pool.py", "fork"), ("command.py",)], ids=" ".join
)
def test_a_child_computes_as_there_and_is_in_the_report(
    words: tuple[str, ...], start: dict[str, str], tmp_path: Path
) -> None:
    done = jitcount("run", "--as-if", "tpu:v5e", *words, cwd=tmp_path, env=start)
    assert done.stdout.split() == [str(THERE)], done
    assert "As if on tpu:v5e: 1 of 1 programs computed as there\n" in done.stderr
    assert "1 program of these in another process\n" in done.stderr
    assert "work.py:6 in work.<lambda>" in done.stderr
    assert not list(tmp_path.glob("jitcount-*"))


def test_what_children_write_is_added_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv(children.VARIABLE, raising=False)
    parent = children.Children("tpu:v5e")
    value = os.environ[children.VARIABLE]
    target, _, folder = value.partition(" ")
    assert (target, parent.have_computed) == ("tpu:v5e", False)
    plain = EmulationSums(programs=2, faithful=1, not_emulated={("f(x)", "why"): None}).plain()
    for number in 11, 12:
        (Path(folder) / f"{number}.jsonl").write_text(f'{json.dumps(plain)}\n{{"programs": ')
    children.begin_in_a_child(f"tpu:unheard-of {folder}")
    sums = EmulationSums(programs=1, faithful=1)
    assert parent.have_computed
    said = render([*sums_table(target, sums), *parent.end(sums)]).splitlines()
    assert (sums.programs, sums.faithful) == (5, 3)
    assert said[1] == "4 programs of these in 2 other processes"
    assert said[2].startswith(f"as on the CPU: process {os.getpid()}: ")
    assert "tpu:unheard-of" in said[2]
    assert children.VARIABLE not in os.environ
    assert not Path(folder).exists()


def test_a_program_that_is_not_forked_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    parent = children.Children("tpu:v5e")
    emulation = Emulation(Emulator.for_target(parse("tpu:v5e"), 60.0))
    parent.watch(emulation)
    program = EmulatedProgram(function="f", signature=(), call_site="a.py:1", faithful=True)
    emulation.add(program)
    before = parent.have_computed
    monkeypatch.setattr(os, "getpid", lambda: -1)
    emulation.add(program)
    assert (before, parent.have_computed) == (False, True)
    sums = EmulationSums()
    parent.end(sums)
    assert (sums.programs, sums.faithful) == (1, 1)
