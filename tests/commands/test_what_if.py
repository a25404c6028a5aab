"""`jitcount run --what-if` measures loops as scans, in other processes, after the program."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from jitcount.commands.what_if import compare
from jitcount.ledger.ledger import read_ledger
from jitcount.observe.call_site import CallSite
from jitcount.profile.result import AsScan, Loop, Measured
from jitcount.show.loops_shown import advice, loop_sentence, scan_sentence
from tests.helpers import jitcount

if TYPE_CHECKING:
    from pathlib import Path

SITE = CallSite("model.py:22 in net")
PROGRAM = """
import jax, jax.numpy as jnp, numpy as np

def net(x, ws):
    for w in ws:
        x = jnp.tanh(x @ w) + 1
    return x

jax.jit(net)(np.ones((4, 8), np.float32), [np.ones((8, 8), np.float32)] * 6)
raise SystemExit(3)
"""


@pytest.mark.thorough
def test_a_loop_is_measured_and_the_exit_code_is_the_programs(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(PROGRAM)
    done = jitcount("run", "--what-if", "--ledger", "run.json", "net.py", cwd=tmp_path)
    assert done.returncode == 3
    lines = done.stderr.splitlines()
    at = lines.index("Unrolled loops")
    assert lines[at + 1 : at + 3] == [
        "net",
        "  an unrolled loop: net.py:5 in net, 6 times the same 3 operations",
    ]
    figures = (
        r"    as jax\.lax\.scan, measured: cpu [\d.]+( m?s)? → [\d.]+ m?s \(the same bits; .*\)"
    )
    assert re.fullmatch(figures, lines[at + 3])
    (entry,) = read_ledger(tmp_path / "run.json").cases.values()
    (loop,) = entry.compiles[0].loops
    assert loop.as_scan is not None
    assert [each.compiler for each in loop.as_scan.measured] == ["cpu"]


def test_a_loop_that_prints_is_named_with_the_reason(tmp_path: Path) -> None:
    text = PROGRAM.replace("    return x", "        jax.debug.print('{}', x)\n    return x")
    (tmp_path / "net.py").write_text(text)
    done = jitcount("run", "--what-if", "net.py", cwd=tmp_path)
    assert done.returncode == 3
    assert "as jax.lax.scan: not measured, it does more than compute: debug_" in done.stderr


def test_a_program_without_loops(tmp_path: Path) -> None:
    (tmp_path / "add.py").write_text("import jax.numpy as jnp\nprint(jnp.ones(3) + 1)\n")
    done = jitcount("run", "--what-if", "add.py", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.endswith("Unrolled loops\nnone was found\n")


# --- What is said ---------------------------------------------------------------------------------


def test_a_loop_in_words() -> None:
    loop = Loop(call_site=SITE, copies=48, operations=27, backward=(47, 17))
    assert loop_sentence(loop) == (
        "an unrolled loop: model.py:22 in net, 48 times the same 27 operations (backward: 47 × 17)"
    )


def measured(compiler: str, before: float, after: float) -> Measured:
    return Measured(compiler=compiler, unrolled_s=before, scan_s=after)


def test_figures_in_words() -> None:
    both = measured("cpu", 62, 9), measured("tpu:v5e", 41, 6)
    assert scan_sentence(AsScan(measured=both, values="the same bits")) == (
        "as jax.lax.scan, measured: cpu 62 → 9 s, tpu:v5e 41 → 6 s "
        "(the same bits; faster as a scan)"
    )


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (10, 5, "faster as a scan"),
        (5, 10, "slower as a scan: keep the loop"),
        (10, 10.5, "no faster as a scan: keep the loop"),
    ],
)
def test_advice_follows_from_the_figures(before: float, after: float, said: str) -> None:
    assert advice([measured("cpu", before, after)]) == said


def test_compilers_that_disagree() -> None:
    both = [measured("cpu", 3, 4), measured("tpu:v5e", 41, 6)]
    assert advice(both) == "faster for some: choose by where you compile most"


# --- Whether two results are the same -------------------------------------------------------------


def test_results_are_compared_to_the_bit_then_within_rounding() -> None:
    one = np.linspace(0, 1, 100, dtype=np.float32)
    assert compare([one], [one.copy()], operations=10) == "the same bits"
    assert compare([one], [np.nextafter(one, np.float32(2))], operations=10) == "within rounding"
    assert compare([one], [one * np.float32(1.001)], operations=10) == ""
    assert compare([one], [np.where(one > 0.5, np.nan, one)], operations=10) == ""
    whole = np.arange(5)
    assert compare([whole], [whole + 1], operations=10) == ""
