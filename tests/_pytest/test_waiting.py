"""The plugin waits for the tests' own import of JAX: they pass with it as they do without it."""

import json
from pathlib import Path

import pytest

from tests.helpers import Project

SETTINGS = """
import os, sys
assert "jax" not in sys.modules
os.environ |= {"JAX_ENABLE_X64": "1", "JAX_NUM_CPU_DEVICES": "3", "JAX_PLATFORMS": "cpu"}
"""

# What a test module sets before it imports JAX.
AT_THE_TOP = (
    SETTINGS
    + """
import jax, numpy as np, pytest

def test_settings():
    assert jax.jit(lambda x: 2 * x)(np.ones(3)).dtype == np.float64
    assert jax.device_count() == 3

@pytest.mark.compiles(step=1)
def test_marker():
    def step(x): return 2 * x
    jax.jit(step)(np.ones(3))
"""
)

# The same in the first test itself: nothing of the project imports JAX before.
IN_THE_BODY = (
    "def test_settings(compiles):\n"
    + SETTINGS.replace("\n", "\n    ")
    + """
    import jax, numpy as np
    assert jax.jit(lambda x: 2 * x)(np.ones(3)).dtype == np.float64
    assert jax.device_count() == 3
    assert compiles.counts() == {"<lambda>": 1}

import pytest

@pytest.mark.no_compiles
def test_marker():
    import jax, numpy as np

@pytest.mark.compiles(step=1)
@pytest.mark.parametrize("time", [1, 2])
def test_isolated(time):
    import jax, numpy as np
    def step(x): return 2 * x
    jax.jit(step)(np.ones(3))
"""
)


SHOWN = ("--compiles", "--compile-ledger=ledger.json", "--compile-target=cpu")
SPREAD = ("-n1", "--compile-ledger=ledger.json", "--compile-budget=b.json", "--compile-update")


@pytest.mark.parametrize(
    ("text", "passed", "options"),
    [
        (AT_THE_TOP, 2, SHOWN),
        pytest.param(AT_THE_TOP, 2, SPREAD, marks=pytest.mark.thorough),
        pytest.param(IN_THE_BODY, 4, (), marks=pytest.mark.thorough),
        pytest.param(IN_THE_BODY, 4, SHOWN, marks=pytest.mark.thorough),
    ],
)
def test_what_tests_set_before_they_import_jax_holds(
    tmp_path: Path, text: str, passed: int, options: tuple[str, ...]
) -> None:
    if "-n1" in options:
        pytest.importorskip("xdist")
    project = Project(tmp_path)
    project.write("test_it.py", text, head="")
    unset = dict.fromkeys(("JAX_ENABLE_X64", "JAX_NUM_CPU_DEVICES", "JAX_PLATFORMS"))
    done = project.run(*options, env=unset)
    assert f"{passed} passed" in done.stdout, done.stdout + done.stderr
    if options:
        ledger = json.loads((tmp_path / "ledger.json").read_text())
        assert ledger["environment"]["config"]["jax_enable_x64"] == "True"
        assert ledger["environment"]["device_count"] == 3
        (compiled,) = ledger["cases"]["test_it.py::test_settings"]["compiles"]
        assert compiled["signature"] == ["float64[3]"]


def test_options_import_nothing_for_tests_without_jax(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write(
        "test_it.py",
        "import sys\n"
        "def test_first(compiles): assert compiles.count() == 0\n"
        "def test_second(): assert 'jax' not in sys.modules\n",
        head="",
    )
    done = project.run("--compiles", "--compile-budget=b.json", "--compile-update")
    assert "2 passed" in done.stdout, done.stdout


def test_what_keeps_it_from_counting_fails_the_test_and_not_its_import(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write(
        "conftest.py",
        "import sys\nsys.modules['jitcount._observe.listener'] = None  # its import fails\n",
        head="",
    )
    project.write("test_it.py", "def test(compiles):\n    import jax\n", head="")
    done = project.run()
    assert "1 failed" in done.stdout
    assert "ImportError" in done.stdout or "ModuleNotFoundError" in done.stdout
