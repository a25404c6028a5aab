"""The table of known miscompiles, and what is said where one of them is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitcount._miscompiles import known
from jitcount._miscompiles.known import KNOWN, jaxlib_release, known_on, warning
from jitcount._miscompiles.suspects import Suspects
from jitcount._registry import registry
from jitcount._suite.crash_cases import CRASH_CASES
from jitcount._suite.reported_cases import REPORTED_CASES
from jitcount._suite.running import chosen
from tests.helpers import ROOT, jitcount, python
from tools.museum import RELEASES, expected_standings, table

if TYPE_CHECKING:
    from pathlib import Path

    from jitcount._miscompiles.known import Miscompile

_IS_WRONG = pytest.mark.skipif(jaxlib_release() != "0.10.2", reason="only 0.10.2 is wrong")

_SCRIPT = """
import jax, jax.numpy as jnp
x = jnp.arange(99_000.0).reshape(-1, 3)
norms = jax.jit(lambda x: jax.vmap(lambda row: jnp.sum((jnp.eye(3) @ row) ** 2))(x))
print(norms(x)[-1])
"""

_WARNING = (
    "this JAX is known to miscompile: vmapped products followed by reductions (jax #39103): use "
    "0.10.1 or 0.11, or set XLA_FLAGS=--xla_cpu_experimental_ynn_fusion_type="
)


_EACH = pytest.mark.parametrize(
    "miscompile", KNOWN, ids=lambda each: f"{each.reference}, {each.platform}, {each.about}"
)
_PAGE = (ROOT / "docs" / "miscompiles.md").read_text(encoding="utf-8")


@_EACH
def test_each_names_its_report_and_what_to_do(miscompile: Miscompile) -> None:
    assert re.fullmatch(r"(jax|openxla) #\d+|unreported: [a-z ]+", miscompile.reference)
    assert miscompile.platform in {"cpu", "cuda", "tpu"}
    assert miscompile.remedy or miscompile.cured_by
    assert re.fullmatch(r"--xla_\w+=[\w-]*|", miscompile.cured_by)


@_EACH
def test_each_begins_in_a_release_and_ends_in_one(miscompile: Miscompile) -> None:
    first, last = map(RELEASES.index, miscompile.releases)
    assert first <= last
    there = [release for release in RELEASES if miscompile.is_in(release)]
    assert there == list(RELEASES[first : last + 1])


@_EACH
def test_each_has_cases_that_exist(miscompile: Miscompile) -> None:
    for pattern in miscompile.cases:
        assert chosen([pattern]), pattern


def test_no_case_is_wrong_by_two_miscompiles_of_a_platform() -> None:
    cases = [(each.platform, pattern) for each in KNOWN for pattern in each.cases]
    assert len(set(cases)) == len(cases)


def test_every_reported_case_is_wrong_somewhere() -> None:
    concerned = {case.id for each in KNOWN if each.cases for case in chosen(each.cases)}
    assert {case.id for case in (*REPORTED_CASES, *CRASH_CASES)} <= concerned


@_EACH
def test_each_has_a_row_in_the_docs_with_its_releases(miscompile: Miscompile) -> None:
    releases = " – ".join(dict.fromkeys(miscompile.releases))
    rows = [row.split(" | ") for row in _PAGE.splitlines() if row.startswith("| ")]
    there = [row for row in rows if miscompile.reference in row[0] and releases in row]
    assert there, f"{miscompile.reference} | {releases}"
    assert all(any(f"`{case}`" in row[-1] for row in there) for case in miscompile.cases)


def test_the_docs_have_the_table_of_releases() -> None:
    shown = table(expected_standings(RELEASES))
    assert f"```text\n{shown}\n```" in _PAGE, "python -m tools.museum --expected prints it"


def test_it_is_known_of_its_releases_and_platform_only() -> None:
    named = {jaxlib: known_on("cpu", jaxlib) for jaxlib in ("0.8.1", "0.8.2")}
    assert {each.reference for each in named["0.8.1"]} - {
        each.reference for each in named["0.8.2"]
    } == {"jax #33479"}
    assert not {each.platform for each in known_on("gpu", "0.10.2")} - {"cuda"}


def test_it_is_known_of_its_machines_only(monkeypatch: pytest.MonkeyPatch) -> None:
    named = {}
    for machine in ("x86_64", "aarch64"):
        monkeypatch.setattr(known, "machine", lambda machine=machine: machine)
        named[machine] = {each.reference for each in known_on("cpu", "0.10.2")}
    assert named["x86_64"] - named["aarch64"] == {"jax #39257"}


@pytest.mark.parametrize("others", ["", ",fusion"])
def test_a_flag_that_cures_it_ends_it(monkeypatch: pytest.MonkeyPatch, others: str) -> None:
    flags = f"--xla_other=1 --xla_disable_hlo_passes=algsimp{others}"
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    before = {each.cured_by for each in known_on("cpu", "0.10.2")}
    monkeypatch.setenv("XLA_FLAGS", flags)
    after = {each.cured_by for each in known_on("cpu", "0.10.2")}
    assert before - after == {"--xla_disable_hlo_passes=algsimp"}


def test_the_warning_says_what_and_where_and_what_to_do() -> None:
    assert warning(known_on("cpu", "0.10.2")[0]) == _WARNING


@_IS_WRONG
def test_such_a_program_is_found_by_its_operations() -> None:
    suspects = Suspects()
    with registry.listening(suspects):
        jax.jit(lambda x: x @ x.T)(np.ones((200, 300), np.float32))
        assert suspects.found == {}
        x = jnp.arange(99_000.0).reshape(-1, 3)
        norms = jax.jit(jax.vmap(lambda row: jnp.sum((jnp.eye(3) @ row) ** 2)))
        norms(x)
        norms(x[:32_900])
    ((told, programs),) = suspects.lines(lambda _: "look").items()
    assert told == _WARNING
    assert len(programs) == 2
    assert programs[0].startswith("<lambda>(float32[33000,3]) at ")
    assert programs[0].endswith("found_by_its_operations is such a program: look")


@pytest.mark.skipif(
    not any(
        each.reference == "unreported: wrapped bytes" for each in known_on("cpu", jaxlib_release())
    ),
    reason="this release is right",
)
def test_arithmetic_of_bytes_is_found_where_its_extreme_is_taken() -> None:
    x = np.ones(4096, np.uint8)
    one = np.uint8(1)
    suspects = Suspects()
    with registry.listening(suspects):
        jax.jit(jnp.min)(x)
        jax.jit(lambda x: jnp.sum(x - one, dtype=np.uint8))(x)
        jax.jit(lambda x: jnp.max(x - one))(x.astype(np.int32))
        assert suspects.found == {}
        jax.jit(lambda x: jnp.min(x - one))(x)
    ((told, programs),) = suspects.lines(lambda _: "look").items()
    assert told.startswith(
        "this JAX is known to miscompile: sums, differences or products of int8 or uint8, then "
        "their largest or smallest (unreported: wrapped bytes): use 0.10.1, or set XLA_FLAGS="
    )
    assert len(programs) == 1


@_IS_WRONG
def test_run_says_it_once_and_a_check_says_that_it_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "norms.py").write_text(_SCRIPT)
    found = jitcount("run", "norms.py", cwd=tmp_path)
    assert found.returncode == 0
    told = "<lambda>(float32[33000,3]) at norms.py:5 in <module> is such a program: "
    advice = "jitcount run --check says whether it is wrong"
    assert _unwrapped(found.stderr).count(f"jitcount: {_WARNING} {told}{advice}") == 1
    checked = jitcount("run", "--check", "norms.py", cwd=tmp_path)
    assert checked.returncode == 1
    # What is compiled is another number in each run, where it is wrong.
    assert re.search(
        r"1 program compared with its operations one by one: 1 wrong WRONG: "
        r"<lambda>\(float32\[33000,3\]\) at norms.py:5 in <module>: its result \[\d+\] is "
        r"[\d.e+]+ compiled, and [\d.]+ operation by operation; [\d,]+ of 33,000 elements are "
        r"wrong",
        _unwrapped(checked.stderr),
    )


@_IS_WRONG
def test_the_advice_cures_it(tmp_path: Path) -> None:
    (tmp_path / "norms.py").write_text(_SCRIPT)
    flags = {"XLA_FLAGS": known_on("cpu", "0.10.2")[0].cured_by}
    found = jitcount("run", "--check", "norms.py", cwd=tmp_path, env=flags)
    assert found.returncode == 0, found.stderr
    told = _unwrapped(found.stderr)
    assert "1 program compared with its operations one by one: none wrong" in told
    assert "known to miscompile" not in told


_TESTS = """
import jax, jax.numpy as jnp, pytest

@pytest.mark.parametrize("n", [5, 33_000])
def test_norms(n):
    x = jnp.arange(3.0 * n).reshape(n, 3)
    norms = jax.jit(lambda x: jax.vmap(lambda row: jnp.sum((jnp.eye(3) @ row) ** 2))(x))
    assert norms(x).shape == (n,)
"""


@_IS_WRONG
@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_test_that_compiles_a_wrong_program_fails(tmp_path: Path, workers: str) -> None:
    (tmp_path / "test_it.py").write_text(_TESTS)
    found = python(
        "-m", "pytest", "-q", "-n", workers, "--compile-check", "test_it.py", cwd=tmp_path
    )
    assert found.returncode == 1
    assert "1 failed, 1 passed" in found.stdout
    assert "what test_norms[33000] compiled is wrong:\n" in found.stdout
    assert found.stdout.count("this JAX is known to miscompile") == 1
    assert "is such a program: a test that it makes wrong fails" in found.stdout


_NOT_PASSING = """
import jax, jax.numpy as jnp, pytest

def compile_wrongly():
    x = jnp.arange(99_000.0).reshape(33_000, 3)
    return jax.jit(lambda x: jax.vmap(lambda row: jnp.sum((jnp.eye(3) @ row) ** 2))(x))(x)

@pytest.fixture
def afterwards():
    yield
    compile_wrongly()

@pytest.fixture
def broken():
    compile_wrongly()
    raise RuntimeError("no fixture")

def test_failing():
    assert compile_wrongly().shape == ()

def test_skipped():
    compile_wrongly()
    pytest.skip("later")

@pytest.mark.xfail(strict=True)
def test_expected_to_fail():
    assert compile_wrongly().shape == ()

def test_with_a_broken_fixture(broken): ...
def test_torn_down(afterwards): ...
def test_that_compiles_nothing(): ...
"""


@_IS_WRONG
def test_what_a_test_compiles_is_held_against_no_other(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(_NOT_PASSING)
    found = python("-m", "pytest", "-q", "-rA", "--compile-check", "test_it.py", cwd=tmp_path)
    assert "1 failed, 2 passed, 1 skipped, 1 xfailed, 2 errors" in found.stdout
    assert "PASSED test_it.py::test_that_compiles_nothing" in found.stdout
    assert "ERROR test_it.py::test_torn_down" in found.stdout
    assert "what test_failing compiled is wrong:" in found.stdout
    assert "what test_torn_down compiled is wrong:" in found.stdout
    assert "5 programs compared with operations one by one" in found.stdout


@_IS_WRONG
def test_without_a_check_the_plugin_says_it_once(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(_TESTS)
    found = python("-m", "pytest", "-q", "--compiles", "test_it.py", cwd=tmp_path)
    assert found.returncode == 0
    assert found.stdout.count("is such a program: pytest --compile-check says whether it") == 1


def test_a_check_is_of_this_machines_compiler(tmp_path: Path) -> None:
    (tmp_path / "norms.py").write_text(_SCRIPT)
    asked = ("run", "--check", "--as-if", "tpu:v5e", "norms.py")
    found = jitcount(*asked, cwd=tmp_path)
    assert found.returncode == 2
    told = "--check compares what this machine's compiler made: not with --as-if"
    assert told in found.stderr


def _unwrapped(text: str) -> str:
    return " ".join(text.split())
