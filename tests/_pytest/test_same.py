"""The fixture `same`: runs of pytest as users have them, one after the other in one process."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from jitcount._ledger.compare import compare
from jitcount._ledger.ledger import read_ledger
from jitcount._ledger.references import read_references
from tests.helpers import ROOT, Project, python

# Runs pytest several times, in a folder; each time with other files, and other options.
DRIVER = """
import contextlib, io, json, pathlib, sys
sys.dont_write_bytecode = True
from tests import stand_in
stand_in.put_in_place()
import pytest
for files, arguments in json.loads(sys.argv[1]):
    for name, text in files.items():
        pathlib.Path(name).write_text(text) if text else pathlib.Path(name).unlink()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = int(pytest.main(["-q", "-p", "no:cacheprovider", *arguments.split()]))
    for name in [n for n in sys.modules if n.startswith(("test_", "conftest"))]:
        del sys.modules[name]
    kept = pathlib.Path("same.json")
    print(json.dumps([code, printed.getvalue(), kept.exists() and json.loads(kept.read_text())]))
"""

HEAD = """
import jax, jax.numpy as jnp, numpy as np, pytest
ONES = np.ones(3, np.float32)
@jax.jit
def step(w):
    return {"w": w * FACTOR, "n": 3}
def host(x):
    return x * float(x.sum())
def wrong(x):
    return step(x)["w"]
def flips(x):
    return step(x)["w"]
"""
STEP = "def test_step(same): assert same(step, ONES)['n'] == 3\n"
TWICE = "def test_twice(same):\n    same(step, ONES)\n    same(step, 2 * ONES)\n"
VALUE = "def test_value(same): same(FACTOR * ONES)\n"
HOST = "def test_host(same): same(host, jnp.ones(3) * FACTOR, within=1e-3)\n"
WRONG = "def test_wrong(same): same(wrong, ONES)\n"
FLIPS = "def test_flips(same): same(flips, ONES, name='a branch')\n"
INI = "[pytest]\n"
ALL = (STEP, TWICE, VALUE, HOST)
UNUSABLE = (
    "'text'",
    "None",
    "ONES, within=-1",
    "ONES, within='x'",
    "jax.jit(lambda x: x + 1, donate_argnums=0), jnp.ones(3)",
)


def with_tests(*tests: str, factor: float = 1.0) -> str:
    return "".join([HEAD, f"FACTOR = np.float32({factor!r})\n", *tests])


def runs(folder: Path, *each: tuple[dict[str, str], str]) -> list[tuple[int, str, Any]]:
    """Run pytest once for each of these; returns its code, its output, and the references."""
    (folder / "pytest.ini").write_text(INI)
    done = python(
        "-c", DRIVER, json.dumps(each), cwd=folder,
        env={"PYTHONPATH": str(ROOT), "COLUMNS": "100", "CI": "1", "JAX_NUM_CPU_DEVICES": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    return [(code, out.replace(f"{folder}{os.sep}", ""), kept) for code, out, kept in found]


def names(kept: Any) -> dict[str, dict[str, list[str]]]:
    """The names in a file of references."""
    return {
        test: {call: list(places) for call, places in of_test.items()}
        for test, of_test in kept["tests"].items()
    }


DECLARED = "as declared, not derived"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str, Any]]:
    every = with_tests(*ALL)
    changed = with_tests(*ALL, factor=1.01)
    larger = STEP.replace("step, ONES)", "lambda w: {**step(w), 'm': 1}, ONES, name='step')")
    unusable = [f"def test_{n}(same): same({what})\n" for n, what in enumerate(UNUSABLE)]
    each = {
        "new": ({"test_a.py": every}, "--compile-ledger=here.json"),
        "updated": ({}, "--same-update"),
        "held": ({}, ""),
        "changed": ({"test_a.py": changed}, "--compile-ledger=there.json"),
        "only one": ({}, "--same-update -k value"),
        "deselected": ({"test_a.py": every}, "--same-update -k step"),
        "one is gone": ({"test_a.py": with_tests(STEP, TWICE, VALUE)}, "--same-update"),
        "one fails": ({"test_a.py": with_tests(STEP, VALUE, WRONG, factor=3)}, "--same-update"),
        "another result": ({"test_a.py": with_tests(larger, factor=3)}, ""),
        "no tolerance": ({"test_a.py": with_tests(FLIPS, WRONG)}, ""),
        "unusable": ({"test_a.py": with_tests(*unusable)}, ""),
        "damaged": ({"same.json": "{}", "test_a.py": every}, ""),
        "not ours": ({}, "--same-update"),
    }
    folder = tmp_path_factory.mktemp("same")
    kept = dict(zip(each, runs(folder, *each.values()), strict=True))
    kept["ledgers"] = (0, str(folder), None)
    return kept


def test_without_references_what_is_judged_by_nothing_is_said(found: dict[str, Any]) -> None:
    code, out, kept = found["new"]
    assert (code, kept) == (0, False)
    value = "it was given as a value, not as a function"
    assert (
        "test_a.py::test_value: within 1e-05 of the largest magnitude between runs, "
        f"{DECLARED}: {value}\n"
        "test_a.py::test_host: within 0.001 of the largest magnitude between runs, "
        f"{DECLARED}: float() of a traced value at cases.py:9\n"
        "judged by nothing, since there is no reference: 2 results of 2 tests; --same-update "
        "writes references to same.json\n"
    ) in out


def test_an_update_puts_all_of_them_into_one_file(found: dict[str, Any]) -> None:
    code, out, kept = found["updated"]
    assert code == 0
    assert "wrote same.json: +4 −0 ~0\n" in out
    assert names(kept) == {
        "test_a.py::test_host": {"host": [""]},
        "test_a.py::test_step": {"step": ["['n']", "['w']"]},
        "test_a.py::test_twice": {"step": ["['n']", "['w']"], "step (2)": ["['n']", "['w']"]},
        "test_a.py::test_value": {"value": [""]},
    }
    assert found["held"][0] == 0
    assert "judged by nothing" not in found["held"][1]


def test_what_has_changed_is_a_failure_that_says_how_to_accept_it(found: dict[str, Any]) -> None:
    code, out, _ = found["changed"]
    assert code == 1
    accept = "the reference is in same.json: --same-update replaces it"
    off = "[0] is 1.00999999, not 1, 83,886 ulps apart"
    derived = f"step['w']: {off}; 9.9e+03 times the derived tolerance 1.01e-06; {accept}"
    declared = "times the declared {} of the largest magnitude,"
    value = f"value: {off}; 990 {declared.format(1e-05)} 1.01e-05; {accept}"
    *others, host = re.findall(r"^(?:step\['w'\]|value|host): .*$", out, re.MULTILINE)
    assert others == [derived, derived, value]
    assert host.endswith(f"; 19.7 {declared.format(0.001)} 0.00306; {accept}")


def test_ledgers_hold_the_results_and_are_compared(found: dict[str, Any]) -> None:
    folder = Path(found["ledgers"][1])
    entry = read_ledger(folder / "here.json").cases["test_a.py::test_step"]
    assert [result.name for result in entry.results] == ["step['n']", "step['w']"]
    assert entry.counts()["step"] == 1  # and nothing of what derives a tolerance
    assert entry.shares_caches
    compared = compare(folder / "here.json", folder / "there.json")
    different = {each.case for each in compared.differences}
    assert different == {f"test_a.py::test_{name}" for name in ("step", "twice", "value", "host")}
    assert "as declared, not derived" in str(compared)


def test_a_partial_run_leaves_the_references_of_others(found: dict[str, Any]) -> None:
    before, (code, out, kept) = found["updated"][2], found["only one"]
    assert (code, names(kept)) == (0, names(before))
    assert "wrote same.json: +0 −0 ~1\n" in out
    assert kept["tests"]["test_a.py::test_value"] != before["tests"]["test_a.py::test_value"]
    code, out, kept = found["deselected"]
    assert "wrote same.json: +0 −0 ~0\n" in out
    assert names(kept) == names(before)


def test_a_test_that_is_gone_is_taken_out_and_one_that_fails_stays(found: dict[str, Any]) -> None:
    _, out, kept = found["one is gone"]
    assert "wrote same.json: +0 −1 ~1\n" in out
    assert "test_a.py::test_host" not in kept["tests"]
    code, out, kept = found["one fails"]
    assert code == 1
    assert "1 test that did not pass: as before\nwrote same.json: +0 −1 ~2\n" in out
    assert [*kept["tests"]] == ["test_a.py::test_step", "test_a.py::test_value"]


def test_another_result_than_was_committed_is_named(found: dict[str, Any]) -> None:
    code, out, _ = found["another result"]
    assert code == 1
    assert (
        "step returns ['m'], ['n'], ['w'], not ['n'], ['w']; "
        "the reference is in same.json: --same-update replaces it"
    ) in out


def test_what_has_no_tolerance_is_said_and_what_is_beyond_one_fails(found: dict[str, Any]) -> None:
    code, out, _ = found["no tolerance"]
    assert code == 1
    assert (
        "wrong: [0] is 1, not 2, 8,388,608 ulps apart; 1e+06 times the derived tolerance 1e-06\n"
    ) in out
    assert (
        "test_a.py::test_flips: 1 of 3 elements has no tolerance, and is not judged: "
        "the branch at cases.py:9 flips in 3 of 8 draws\n"
    ) in out


def test_what_cannot_be_judged_is_a_sentence(found: dict[str, Any]) -> None:
    _, out, _ = found["unusable"]
    assert re.findall(r"^E +(.*)$", out, re.MULTILINE) == [
        "TypeError: its result is a str, and no array: return arrays alone",
        "ValueError: same has nothing to judge: value has no array",
        "ValueError: within must be 0 or a positive number, as 1e-5; it is -1",
        "ValueError: within must be 0 or a positive number, as 1e-5; it is 'x'",
        (
            "ValueError: its argument [0] was donated, and is gone after one call: "
            "give a NumPy array, of which each call makes one"
        ),
    ]


def test_a_file_of_others_ends_the_run_and_is_left(found: dict[str, Any]) -> None:
    for name, left in (("damaged", ""), ("not ours", "; it is left as it is")):
        code, out, kept = found[name]
        assert (code, kept) == (2, {})
        assert f"same.json: is not a jitcount reference file{left}" in out


@pytest.mark.thorough
def test_workers_of_xdist_send_what_they_found(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    project = Project(tmp_path)
    project.write("test_a.py", with_tests(STEP, VALUE), head="")
    start = "from tests import stand_in\nstand_in.put_in_place()\n"
    project.write("conftest.py", start, head="")
    env = {"PYTHONPATH": str(ROOT)}
    options = ("-n2", "--same-update", "--compile-ledger=here.json")
    done = project.run(*options, env=env)
    assert done.returncode == 0, done.stdout
    assert "wrote " in done.stdout
    assert "test_a.py::test_value: within 1e-05" in done.stdout
    assert [*read_references(tmp_path / "same.json").tests] == [
        "test_a.py::test_step",
        "test_a.py::test_value",
    ]
    entry = read_ledger(tmp_path / "here.json").cases["test_a.py::test_step"]
    assert len(entry.results) == 2
    assert project.run("-n2", env=env).returncode == 0


@pytest.mark.aot("tpu:v5e")
@pytest.mark.thorough
def test_as_if_on_a_tpu_a_failure_is_its_own(tmp_path: Path) -> None:
    project = Project(tmp_path)
    product = "def test_product(same): same(jax.jit(lambda x: x @ x), FACTOR * jnp.ones((3, 3)))\n"
    project.write("test_a.py", with_tests(product, factor=1.01), head="")
    start = "from tests import stand_in\nstand_in.put_in_place()\n"
    project.write("conftest.py", start, head="")
    done = project.run("--as-if=tpu:v5e", env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == 1
    assert "called again as on the CPU it passes" in done.stdout
