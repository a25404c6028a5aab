"""`jitcount run --what-if` measures loops as scans, in other processes, after the program."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

import numpy as np
import pytest

from jitcount._ledger.ledger import read_ledger
from jitcount._loops.result import AsScan, Loop, Measured
from jitcount._observe.call_site import CallSite
from jitcount._profile.result import Profile
from jitcount._show.profile_table import loop_notes, loop_sentence, scan_sentences
from jitcount._what_if import compare
from tests.helpers import has_ended, jitcount, running, wait_until

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
    figures = r"cpu [\d.]+( m?s)? → [\d.]+ m?s"
    assert re.fullmatch(
        rf"    as jax\.lax\.scan, measured: {figures} \(the same bits; .*\)", lines[at + 3]
    )
    stacked = "    with its 6 arguments stacked into one beforehand"
    assert re.fullmatch(rf"{stacked}: {figures} \(.*\)", lines[at + 4])
    (entry,) = read_ledger(tmp_path / "run.json").cases.values()
    (loop,) = entry.compiles[0].loops
    assert loop.as_scan is not None
    assert [each.compiler for each in loop.as_scan.measured] == ["cpu"]
    assert loop.as_scan.stacked == (6,)
    assert loop.as_scan.measured[0].stacked_s is not None


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


# --- Compilers that end, and Ctrl-C ---------------------------------------------------------------

# The first compiler that is asked does this; those after it are as always.
FIRST = """
import sys
from jitcount._targets import process
real, asked = process.command, []
def command():
    asked.append(1)
    return [sys.executable, "-c", {what!r}] if len(asked) == 1 else real()
process.command = command
"""
DIES = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
HANGS = (
    "import os, pathlib, time; pathlib.Path('half').write_text(str(os.getpid())); "
    "os.rename('half', 'hanging'); time.sleep(600)"
)


@pytest.mark.thorough
def test_a_compiler_that_dies_costs_its_figures_and_no_more(tmp_path: Path) -> None:
    loops = PROGRAM.replace(
        "    return x", "    for w in ws:\n        x = jnp.sin(x * 2)\n    return x"
    )
    (tmp_path / "net.py").write_text(FIRST.format(what=DIES) + loops)
    done = jitcount("run", "--what-if", "net.py", cwd=tmp_path)
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    *_, name, _, first, _, second, together, _ = done.stderr.splitlines()
    assert name == "net"
    assert first == (
        "    as jax.lax.scan, measured: cpu not at all: the compiler was ended by SIGKILL (Killed)"
    )
    assert second.startswith("    as jax.lax.scan, measured: cpu ")
    assert together.startswith("  all 2 loops as jax.lax.scan, measured: cpu ")


def test_ctrl_c_ends_the_compilers_and_what_was_measured_is_shown(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(FIRST.format(what=HANGS) + PROGRAM)
    hanging = tmp_path / "hanging"
    with running("-m", "jitcount", "run", "--what-if", "net.py", cwd=tmp_path) as process:
        wait_until(hanging.exists, process)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert has_ended(int(hanging.read_text()))
    assert "Traceback" not in stderr
    said = "jitcount: --what-if was interrupted: not all loops were measured"
    assert [line for line in stderr.splitlines() if line.startswith("jitcount:")] == [said]
    assert stderr.endswith(
        "net\n  an unrolled loop: net.py:13 in net, 6 times the same 3 operations\n"
    )


# --- What is said ---------------------------------------------------------------------------------


def test_a_loop_in_words() -> None:
    loop = Loop(call_site=SITE, copies=48, operations=27, backward=(47, 17))
    assert loop_sentence(loop) == (
        "an unrolled loop: model.py:22 in net, 48 times the same 27 operations (backward: 47 × 17)"
    )


def measured(compiler: str, before: float, after: float, stacked: float | None = None) -> Measured:
    return Measured(compiler=compiler, unrolled_s=before, scan_s=after, stacked_s=stacked)


def said(*figures: Measured, stacked: tuple[int, ...] = ()) -> list[str]:
    return scan_sentences(AsScan(measured=figures, values="the same bits", stacked=stacked))


def test_figures_in_words() -> None:
    (sentence,) = said(measured("cpu", 62, 9), measured("tpu:v5e", 41, 6))
    assert sentence == (
        "as jax.lax.scan, measured: cpu 62 → 9 s, tpu:v5e 41 → 6 s "
        "(the same bits; faster as a scan)"
    )


@pytest.mark.parametrize(
    ("before", "after", "follows"),
    [
        (10, 5, "faster as a scan"),
        (5, 10, "slower as a scan: keep the loop"),
        (10, 10.5, "no faster as a scan: keep the loop"),
    ],
)
def test_advice_follows_from_the_figures(before: float, after: float, follows: str) -> None:
    (sentence,) = said(measured("cpu", before, after))
    assert sentence.endswith(f" (the same bits; {follows})")


def test_compilers_that_disagree() -> None:
    (sentence,) = said(measured("cpu", 3, 4), measured("tpu:v5e", 41, 6))
    assert sentence.endswith("; faster for some: choose by where you compile most)")


def test_a_scan_that_is_worth_it_only_with_stacked_arguments() -> None:
    assert said(measured("cpu", 4, 9, 2), stacked=(6, 6)) == [
        "as jax.lax.scan, measured: cpu 4 → 9 s (the same bits; slower as a scan)",
        "with its 12 arguments stacked into 2 beforehand: cpu 4 → 2 s (faster as a scan)",
    ]


def test_a_scan_that_is_not_worth_it_either_way() -> None:
    first, second = said(measured("cpu", 4, 9, 8), stacked=(6,))
    assert first.endswith("(the same bits; slower as a scan)")
    assert second == (
        "with its 6 arguments stacked into one beforehand: cpu 4 → 8 s "
        "(slower as a scan: keep the loop)"
    )


def test_all_loops_of_a_program_at_once() -> None:
    loop = Loop(call_site=SITE, copies=4, operations=3)
    together = AsScan(measured=(measured("cpu", 4, 2),), values="the same bits", loops=2)
    notes = list(loop_notes(Profile(loops=(loop, loop), as_scans=together)))
    assert (notes[-1].depth, notes[-1].text) == (
        1,
        "all 2 loops as jax.lax.scan, measured: cpu 4 → 2 s (the same bits; faster as a scan)",
    )


# --- Whether two results are the same -------------------------------------------------------------


def test_results_are_compared_to_the_bit_then_within_rounding() -> None:
    one = np.linspace(0, 1, 100, dtype=np.float32)
    assert compare([one], [one.copy()], operations=10) == "the same bits"
    assert compare([one], [np.nextafter(one, np.float32(2))], operations=10) == "within rounding"
    assert compare([one], [one * np.float32(1.001)], operations=10) == ""
    assert compare([one], [np.where(one > 0.5, np.nan, one)], operations=10) == ""
    whole = np.arange(5)
    assert compare([whole], [whole + 1], operations=10) == ""
