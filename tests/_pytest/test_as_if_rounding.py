"""``pytest --as-if=rounding`` on a small project."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.helpers import Project

if TYPE_CHECKING:
    from pathlib import Path

_TESTS = """
import jax.numpy as jnp
import numpy as np

TIME = np.linspace(0, 1, 100, dtype=np.float32)

def test_growth():
    np.testing.assert_allclose(jnp.exp(TIME), np.exp(TIME.astype(np.float64)), rtol=2e-7)

def test_shares():
    np.testing.assert_array_equal(jnp.full((8, 128), 1 / 128).sum(1), 1)

def test_wrong():
    assert jnp.exp(TIME).sum() < 0
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.write("test_a.py", _TESTS, head="")
    return made


def test_what_fails_only_so_is_named_with_its_line_and_tolerance(project: Project) -> None:
    done = project.run("--as-if=rounding", "-k", "growth or shares or wrong")
    assert done.returncode == 1
    title = "with other rounding (seed 0)"
    assert f" {title} " in done.stdout
    sums = r"^Computed with other rounding \(seed 0\): (\d+) of \1 programs$"
    assert re.search(sums, done.stdout, re.MULTILINE)
    assert "\n1 of 2 failed tests fail only so:\n" in done.stdout
    place = r"test_a.py:8: rtol=[4-9]e-07 would do, where it has rtol=2e-07, atol=0"
    assert re.search(rf"^  test_a.py::test_growth: {place}$", done.stdout, re.MULTILINE)
    only = f"It fails only {title}: called again as on the CPU it passes."
    assert done.stdout.count(only) == 1
    assert re.search(rf"^At {place}$", done.stdout, re.MULTILINE)
    assert "Called again as on the CPU it fails, too: AssertionError" in done.stdout


def test_a_name_that_is_none_ends_the_run(project: Project) -> None:
    done = project.run("--as-if=rounding:x")
    assert done.returncode == 2
    expected = "Exit: 'rounding:x': a seed is a whole number from 0 on, as in 'rounding:7'"
    assert expected in done.stdout + done.stderr
    done = project.run("--as-if=rounding", "--as-if-exact-products")
    assert done.returncode == 2
    expected = "Exit: --as-if-exact-products is for a target: not with rounding"
    assert expected in done.stdout + done.stderr
