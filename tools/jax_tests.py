"""Runs JAX's own tests on the CPU and as if on a TPU and a GPU, and compares test by test.

``python -m tools.jax_tests`` runs all files of `FILES`, or those that are named after it. The
tests are those of a checkout of JAX, of the release that is installed; ``JITCOUNT_JAX_TESTS`` says
where it is.

Products are exact in these runs: their rounding is the chip's own, and JAX's tests on the CPU do
not expect it. What then becomes of a test is what becomes of it on the CPU, or there is a
difference. A difference is *the chip's own* where JAX's own tests say so: told that the device is a
TPU or a GPU (JAX's option ``jax_test_dut``), the test is left out, or passes with what it demands
of that device. `KNOWN` has the others, with the reason. Any other may be our fault: the session
fails. What JAX leaves out on a CPU is asked for in the same way: what it runs on that device only
must pass.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.jax_tests_plugin import DEVICE, LINES, ONLY, VARIANTS, read

if TYPE_CHECKING:
    from collections.abc import Sequence

CHECKOUT = "JITCOUNT_JAX_TESTS"
"""The variable with the folder of the checkout."""

TARGETS = {"tpu:v5e": "tpu", "cuda:h100": "gpu"}
"""The targets, with the name that JAX's tests have for such a device."""

FILES = (
    "lax_numpy_indexing_test",
    "lax_numpy_reducers_test",
    "lax_test",
    "nn_test",
    "lax_numpy_operators_test",
    "fft_test",
    "linalg_test",
    "random_test",
    "random_lax_test",
    "image_test",
    "lax_scipy_test",
    "lax_scipy_special_functions_test",
    "lax_scipy_sparse_test",
    "lax_scipy_spectral_dac_test",
    "scipy_fft_test",
    "scipy_interpolate_test",
    "scipy_ndimage_test",
    "scipy_optimize_test",
    "scipy_signal_test",
    "scipy_spatial_test",
    "scipy_stats_test",
    "lax_numpy_test",
    "lax_numpy_einsum_test",
    "lax_numpy_setops_test",
    "lax_numpy_ufuncs_test",
    "lax_numpy_vectorize_test",
    "lax_autodiff_test",
    "lax_control_flow_test",
    "lax_vmap_test",
    "lax_vmap_op_test",
)

KNOWN: tuple[tuple[str, str, str], ...] = (
    (
        "cuda",
        "*::test_threefry_gpu_kernel_lowering",
        "it reads what JAX lowers, and that is the CPU's: only what is computed is the chip's",
    ),
)
"""Differences that JAX's tests do not know of: target, pattern of tests, and the chip's reason."""

SKIPPED = "skipped"

DIED = "died"
"""The outcome of a test whose process died, or took too long, before it ended."""

NOT_COLLECTED = "not collected"
"""The outcome of a test that pytest did not find, or that nobody asked for."""

_RESULTS = Path(__file__).parents[1] / "results" / "jax-tests"


@dataclass(frozen=True, slots=True)
class Difference:
    """A test that ends otherwise as if on a target."""

    test: str
    here: str
    """What became of it on the CPU: "passed", "failed", "skipped", "died" or "not collected"."""

    there: str
    why: str
    """The first line of the failure there."""

    reason: str = ""
    """Why it is the chip's own; empty where that is not known."""


@dataclass(slots=True)
class Comparison:
    """The tests of a file, on the CPU and as if on a target."""

    file: str
    target: str
    tests: int = 0
    same: int = 0
    """How many tests end as on the CPU."""

    left_out: int = 0
    """How many of these JAX leaves out on both."""

    differences: list[Difference] = field(default_factory=list)
    programs: int = 0
    not_carried_over: Counter[str] = field(default_factory=Counter)
    """Programs that ran as on the CPU, by reason."""

    @property
    def own(self) -> list[Difference]:
        """The differences that are the chip's own."""
        return [each for each in self.differences if each.reason]

    @property
    def faults(self) -> list[Difference]:
        """The differences that nothing explains."""
        return [each for each in self.differences if not each.reason]


Lines = dict[str, dict[str, Any]]


def outcome(lines: Lines, test: str) -> str:
    """What became of a test."""
    return str(lines[test].get("outcome", DIED)) if test in lines else NOT_COLLECTED


def compare(file: str, target: str, here: Lines, there: Lines, asked_there: Lines) -> Comparison:
    """Compare the tests of a file.

    Args:
        file: its name.
        target: the target.
        here: what became of its tests on the CPU.
        there: the same as if on the target.
        asked_there: the same of tests that differ, or are left out on both, where they take the
            device for the target's.
    """
    found = Comparison(file, target)
    for test in here | there:
        one, other = outcome(here, test), outcome(there, test)
        line = there.get(test, {})
        found.tests += 1
        found.programs += line.get("programs", 0)
        found.not_carried_over.update(line.get("not_carried_over", ()))
        if one == other == SKIPPED and outcome(asked_there, test) not in {SKIPPED, NOT_COLLECTED}:
            line = asked_there[test]
            other = outcome(asked_there, test)
        elif one == other:
            found.same += 1
            found.left_out += one == SKIPPED
            continue
        why = str(line.get("why", "")).partition("\n")[0]
        reason = _reason(target, test, one, asked_there)
        found.differences.append(Difference(test, one, other, why, reason))
    return found


def _reason(target: str, test: str, here: str, asked_there: Lines) -> str:
    """Why a difference is the chip's own; empty where that is not known."""
    for where, pattern, reason in KNOWN:
        if target.startswith(where) and fnmatch(test, pattern):
            return reason
    there = outcome(asked_there, test)
    if there == SKIPPED:
        return f"JAX leaves it out there: {asked_there[test]['why'].removeprefix('Skipped: ')}"
    if there == "passed":
        if here == SKIPPED:
            return "JAX runs it on such a device only"
        return "it passes with what JAX demands there"
    return ""


# --- Running -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs files of JAX's tests, each in a process of its own."""

    checkout: Path
    results: Path
    cases: int
    timeout: float
    variants: int = 0
    """How many variants of a test to run at most; 0 for all."""

    def run(
        self, file: str, target: str = "", device: str = "", only: Sequence[str] | None = None
    ) -> Lines:
        """What became of the tests of a file; those that an earlier run has kept are not run again.

        Args:
            file: its name, without the ending.
            target: compute as if there.
            device: what JAX's tests are to take the device for; by default what it is.
            only: the tests to run; by default all.
        """
        name = "-".join(filter(None, (file, target.replace(":", "-") or "cpu", device)))
        lines = self.results / f"{name}.jsonl"
        # JAX's repository has a folder jax: not what is installed, and not to be imported.
        env = os.environ | {
            LINES: str(lines),
            "JAX_NUM_GENERATED_CASES": str(self.cases),
            "JAX_PLATFORMS": "cpu",
            "JAX_SKIP_SLOW_TESTS": "1",
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "PYTHONSAFEPATH": "1",
        }
        if self.variants:
            env[VARIANTS] = str(self.variants)
        if device:
            env[DEVICE] = device
        if only is not None:
            chosen = self.results / f"{name}.json"
            chosen.write_text(json.dumps(list(only)))
            env[ONLY] = str(chosen)
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider"]
        command += ["-p", "tools.jax_tests_plugin", f"tests/{file}.py"]
        if target:
            command += [f"--as-if={target}", "--as-if-exact-products"]
        with (self.results / f"{name}.txt").open("a") as output:
            while True:
                before = len(read(lines))
                code = self._pytest(command, env, output)
                # A process that dies takes one test with it: the next one goes on behind that.
                if code in _ENDED or len(read(lines)) == before:
                    break
        if code not in _ENDED:
            raise RuntimeError(f"pytest ended with {code}: see {self.results / name}.txt")
        return read(lines)

    def _pytest(self, command: list[str], env: dict[str, str], output: Any) -> int:
        try:
            return subprocess.run(  # noqa: S603
                command, check=False, cwd=self.checkout, env=env, stdout=output, stderr=output,
                timeout=self.timeout,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            return -1

    def compared(self, file: str, target: str, here: Lines) -> Comparison:
        """A file as if on a target beside the CPU.

        What differs, and what is left out on both, is run as JAX tests that device, too.
        """
        there = self.run(file, target)
        found = compare(file, target, here, there, {})
        only = [each.test for each in found.faults]
        only += [test for test in there if outcome(here, test) == outcome(there, test) == SKIPPED]
        if not only:
            return found
        asked_there = self.run(file, target, TARGETS[target], only)
        return compare(file, target, here, there, asked_there)


_ENDED = (0, 1, 5)  # all passed, some failed, there was none to run


def checkout() -> Path:
    """The folder of JAX's repository.

    Raises:
        ValueError: there is none, or it is not of the release that is installed.
    """
    import jax  # noqa: PLC0415 (it takes long)

    how = (
        f"`git clone --depth 1 --branch jax-v{jax.__version__} https://github.com/jax-ml/jax "
        f"../jax` makes one, and {CHECKOUT} names its folder"
    )
    named = os.environ.get(CHECKOUT)
    if not named:
        raise ValueError(f"{CHECKOUT} is not set: a checkout of JAX's tests is needed. {how}")
    folder = Path(named).resolve()
    if not (folder / "tests" / "lax_test.py").exists():
        raise ValueError(f"{CHECKOUT} is {named!r}, which has no tests/lax_test.py. {how}")
    version = folder / "jax" / "version.py"
    if version.exists() and f'_version = "{jax.__version__}"' not in version.read_text():
        raise ValueError(f"{CHECKOUT} is not JAX {jax.__version__}, which is installed. {how}")
    return folder


# --- Showing -------------------------------------------------------------------------------------


def sentence(found: Comparison) -> str:
    """One comparison in a line."""
    carried = found.programs - found.not_carried_over.total()
    return (
        f"{found.file} as if on {found.target}: of {found.tests:,} tests {found.same:,} as on the "
        f"CPU ({found.left_out:,} left out on both), {len(found.own):,} the chip's own, "
        f"{len(found.faults):,} differ; {carried:,} of {found.programs:,} programs carried over"
    )


def table(found: Sequence[Comparison]) -> str:
    """The comparisons as a table in Markdown: a row for each file, and one for all of them."""
    targets = list(dict.fromkeys(each.target for each in found))
    columns = ["as on the CPU", "the chip's own", "differ", "programs carried over"]
    heads = [f"{target}: {columns[0]} | {' | '.join(columns[1:])}" for target in targets]
    rows = [f"| file | tests | {' | '.join(heads)} |"]
    tests = {each.file: each.tests for each in found}
    rows.append("|---" + "|---:" * (1 + len(columns) * len(targets)) + "|")
    for file in (*dict.fromkeys(each.file for each in found), None):
        cells = [f"`{file}`" if file else "all"]
        for target in targets:
            group = [each for each in found if each.target == target and file in {None, each.file}]
            if target == targets[0]:
                cells.append(f"{tests[file] if file else sum(tests.values()):,}")
            if not group:  # this file was not run there
                cells += ["–"] * len(columns)
                continue
            programs = sum(each.programs for each in group)
            lost = sum(each.not_carried_over.total() for each in group)
            cells += [
                f"{sum(each.same for each in group):,}",
                f"{sum(len(each.own) for each in group):,}",
                f"{sum(len(each.faults) for each in group):,}",
                f"{programs - lost:,} of {programs:,}",
            ]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def notes(found: Sequence[Comparison]) -> str:
    """Each difference, and why programs were not carried over."""
    lines = []
    for each in found:
        lines += [
            f"{each.target} {one.test}: {one.here} on the CPU, {one.there} there. "
            + (one.reason or f"NOT EXPLAINED: {one.why}")
            for one in each.differences
        ]
    for target in dict.fromkeys(each.target for each in found):
        reasons = sum(
            (each.not_carried_over for each in found if each.target == target), Counter[str]()
        )
        lines += [
            f"{target}: not carried over, {n} times: {why}" for why, n in reasons.most_common()
        ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run, compare and print; returns 1 if there is a difference that nothing explains."""
    parser = argparse.ArgumentParser(prog="python -m tools.jax_tests")
    parser.add_argument("files", nargs="*", metavar="FILE", help="files of JAX's tests")
    parser.add_argument("--target", action="append", choices=TARGETS, help="only this target")
    parser.add_argument("--cases", type=int, default=1, help="how many generated cases a test has")
    parser.add_argument(
        "--variants", type=int, default=0, help="how many variants a test has at most, where it "
        "has many that --cases does not limit; by default all"
    )  # fmt: skip
    parser.add_argument("--timeout", type=float, default=3600, help="seconds for one process")
    parser.add_argument(
        "--results", type=Path, default=_RESULTS, help="what became of each test; kept tests are "
        "not run again"
    )  # fmt: skip
    asked = parser.parse_args(arguments)
    try:
        folder = checkout()
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    asked.results.mkdir(parents=True, exist_ok=True)
    runner = Runner(folder, asked.results.resolve(), asked.cases, asked.timeout, asked.variants)
    found = []
    for file in asked.files or FILES:
        here = runner.run(file)
        for target in asked.target or TARGETS:
            found.append(runner.compared(file, target, here))
            print(sentence(found[-1]), flush=True)
    print("\n" + notes(found) + "\n\n" + table(found))
    return 1 if any(each.faults for each in found) else 0


if __name__ == "__main__":
    sys.exit(main())
