"""JAX's own tests as a judge: what counts as the chip's own, and what as a fault."""

import json
from pathlib import Path
from typing import Any

import jax
import pytest

from tests.helpers import python
from tools import jax_tests
from tools.jax_tests import CHECKOUT, Difference, compare, notes, sentence, table
from tools.jax_tests_plugin import LINES, VARIANTS, read

A, B = "tests/lax_test.py::LaxTest::testA", "tests/lax_test.py::LaxTest::testB"
PASSED = {"outcome": "passed", "why": ""}
SKIPPED = {"outcome": "skipped", "why": "Skipped: not on TPU"}
FAILED = {"outcome": "failed", "why": "AssertionError: far off\nby 1"}


def compared(
    here: dict[str, Any], there: dict[str, Any], asked_there: dict[str, Any]
) -> jax_tests.Comparison:
    return compare("lax_test", "tpu:v5e", here, there, asked_there)


def test_what_ends_as_on_the_cpu_is_the_same_also_if_it_fails() -> None:
    found = compared({A: PASSED, B: FAILED}, {A: PASSED, B: FAILED}, {})
    assert (found.same, found.differences) == (2, [])


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (SKIPPED, "JAX leaves it out there: not on TPU"),
        (PASSED, "it passes with what JAX demands there"),
        (FAILED, ""),
        ({}, ""),
    ],
)
def test_a_difference_is_the_chips_own_where_jaxs_tests_say_so(
    asked: dict[str, str], reason: str
) -> None:
    found = compared({A: PASSED, B: PASSED}, {A: FAILED, B: PASSED}, {A: asked})
    difference = Difference(A, "passed", "failed", "AssertionError: far off", reason)
    assert (found.own if reason else found.faults) == [difference]
    assert found.differences == [difference]


def test_what_is_left_out_on_both_is_judged_where_jax_runs_it_only_there() -> None:
    both = {A: SKIPPED, B: SKIPPED}
    found = compared(both, both, {A: PASSED, B: SKIPPED})
    assert (found.same, found.left_out, found.faults) == (1, 1, [])
    assert found.own == [Difference(A, "skipped", "passed", "", _ONLY_THERE)]
    found = compared(both, both, {A: FAILED, B: SKIPPED})
    assert found.faults == [Difference(A, "skipped", "failed", "AssertionError: far off")]


def test_a_known_difference_has_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax_tests, "KNOWN", (("tpu", "*::testA", "sums in another order"),))
    (difference,) = compared({A: PASSED}, {A: FAILED}, {}).own
    assert difference.reason == "sums in another order"
    assert compare("lax_test", "cuda:h100", {A: PASSED}, {A: FAILED}, {}).faults


def test_a_test_that_dies_or_is_not_collected_differs() -> None:
    found = compared({A: PASSED, B: PASSED}, {A: {}}, {})
    assert [(each.here, each.there) for each in found.faults] == [
        ("passed", "died"),
        ("passed", "not collected"),
    ]


def test_the_table_has_a_row_for_each_file_and_adds_them_up() -> None:
    there = {A: PASSED | {"programs": 7, "not_carried_over": ["a callback", "a callback"]}}
    one = compare("nn_test", "tpu:v5e", {A: PASSED}, there, {})
    two = compared({A: PASSED, B: PASSED}, {A: FAILED | {"programs": 1}, B: FAILED}, {B: SKIPPED})
    gpu = compare("nn_test", "cuda:h100", {A: PASSED}, {A: PASSED}, {})
    assert sentence(two) == (
        "lax_test as if on tpu:v5e: of 2 tests 0 as on the CPU (0 left out on both), 1 the chip's "
        "own, 1 differ; 1 of 1 programs carried over"
    )
    head = "as on the CPU | the chip's own | differ | programs carried over"
    assert table([one, gpu, two]).splitlines() == [
        f"| file | tests | tpu:v5e: {head} | cuda:h100: {head} |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        "| `nn_test` | 1 | 1 | 0 | 0 | 5 of 7 | 1 | 0 | 0 | 0 of 0 |",
        "| `lax_test` | 2 | 0 | 1 | 1 | 1 of 1 | – | – | – | – |",
        "| all | 3 | 1 | 1 | 1 | 6 of 8 | 1 | 0 | 0 | 0 of 0 |",
    ]
    assert notes([one, two]).splitlines() == [
        f"tpu:v5e {A}: passed on the CPU, failed there. NOT EXPLAINED: AssertionError: far off",
        f"tpu:v5e {B}: passed on the CPU, failed there. JAX leaves it out there: not on TPU",
        "tpu:v5e: not carried over, 2 times: a callback",
    ]


# --- The checkout ---------------------------------------------------------------------------------


def checkout_of(folder: Path, text: str) -> Path:
    (folder / "tests").mkdir()
    (folder / "tests" / "lax_test.py").write_text(text)
    (folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    return folder


def test_without_a_checkout_it_says_how_to_make_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(CHECKOUT, raising=False)
    assert jax_tests.main([]) == 2
    assert capsys.readouterr().err == (
        "JITCOUNT_JAX_TESTS is not set: a checkout of JAX's tests is needed. `git clone --depth 1 "
        f"--branch jax-v{jax.__version__} https://github.com/jax-ml/jax ../jax` makes one, and "
        "JITCOUNT_JAX_TESTS names its folder\n"
    )


def test_a_folder_without_tests_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CHECKOUT, str(tmp_path))
    assert jax_tests.main([]) == 2
    assert "which has no tests/lax_test.py. `git clone" in capsys.readouterr().err


def test_tests_of_another_release_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CHECKOUT, str(checkout_of(tmp_path, "")))
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "version.py").write_text('_version = "0.1.2"\n')
    assert jax_tests.main([]) == 2
    installed = f"is not JAX {jax.__version__}, which is installed."
    assert installed in capsys.readouterr().err


def test_of_many_variants_a_few_run_from_the_first_on_evenly_spaced(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\n"
        "@pytest.mark.parametrize('n', range(5))\ndef test_many(n):\n    pass\n\n"
        "def test_one():\n    pass\n"
    )
    lines = tmp_path / "lines"
    command = ("-m", "pytest", "-p", "tools.jax_tests_plugin", "-p", "no:cacheprovider")
    done = python(*command, str(tmp_path), env={LINES: str(lines), VARIANTS: "2"})
    assert done.returncode == 0, done.stdout
    tests = [test.partition("::")[2] for test in read(lines)]
    assert tests == ["test_many[0]", "test_many[3]", "test_one"]


# --- Whole runs -----------------------------------------------------------------------------------

TESTS = """
import os

import jax
import jax.numpy as jnp
import pytest
from jax._src import test_util as jtu


def is_as_if():
    return jax.config.values["jax_xla_profile_version"] >= 1_000_000


def test_same():
    assert float(jnp.sin(0.0)) == 0


def test_that_dies_there():
    if is_as_if():
        os._exit(3)


def test_left_out_there():
    if jtu.device_under_test() == "tpu":
        pytest.skip("not on TPUs")
    assert not is_as_if()


def test_with_other_demands_there():
    assert not is_as_if() or jtu.device_under_test() == "tpu"


def test_other():
    assert not is_as_if()


def test_left_out_on_both():
    pytest.skip("slow")


def test_on_a_tpu_only():
    if jtu.device_under_test() != "tpu":
        pytest.skip("only on TPUs")
    assert is_as_if()
"""


_ONLY_THERE = "JAX runs it on such a device only"


@pytest.mark.thorough
@pytest.mark.aot("tpu:v5e")
def test_a_run_compares_test_by_test_and_goes_on_behind_one_that_dies(tmp_path: Path) -> None:
    pytest.importorskip("absl", reason="JAX's own test utilities need it")
    folder = checkout_of(tmp_path, TESTS)
    # As in JAX's repository: what is installed is tested, not this.
    (folder / "jax").mkdir()
    (folder / "jax" / "__init__.py").write_text("raise ImportError")
    command = ("-m", "tools.jax_tests", "lax_test", "--target", "tpu:v5e")
    results = tmp_path / "results"
    done = python(*command, "--results", str(results), env={CHECKOUT: str(folder)})
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    about = "lax_test as if on tpu:v5e: of 7 tests"
    counts = "2 as on the CPU (1 left out on both), 3 the chip's own, 2 differ; "
    assert lines[0].startswith(f"{about} {counts}")
    about = "tpu:v5e tests/lax_test.py::test_"
    assert f"{about}on_a_tpu_only: skipped on the CPU, passed there. {_ONLY_THERE}" in lines
    told = [line.removeprefix(about).split(": passed on the CPU, ") for line in lines]
    assert [each for each in told if len(each) > 1] == [
        ["that_dies_there", "died there. NOT EXPLAINED: "],
        ["left_out_there", "failed there. JAX leaves it out there: not on TPUs"],
        ["with_other_demands_there", "failed there. it passes with what JAX demands there"],
        ["other", "failed there. NOT EXPLAINED: assert not True"],
    ]
    # What it has kept is not run again.
    kept = read(results / "lax_test-tpu-v5e.jsonl")
    assert [test.partition("::")[2] for test in kept] == [
        "test_same",
        "test_that_dies_there",
        "test_left_out_there",
        "test_with_other_demands_there",
        "test_other",
        "test_left_out_on_both",
        "test_on_a_tpu_only",
    ]
    text = "".join(json.dumps({"test": test} | PASSED) + "\n" for test in kept)
    (results / "lax_test-tpu-v5e.jsonl").write_text(text)
    again = python(*command, "--results", str(results), env={CHECKOUT: str(folder)})
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith("lax_test as if on tpu:v5e: of 7 tests 5 as on the CPU (0 ")
