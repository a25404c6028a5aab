"""What holds for the package as a whole."""

import ast
import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import jitcount
from tests.helpers import Finished, python

SOURCE = Path(jitcount.__file__).parent
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(jitcount.__path__, prefix="jitcount.")
)


def run(code: str) -> Finished:
    return python("-W", "error", "-c", code)


def test_importing_initialises_no_backend_and_prints_nothing() -> None:
    done = run(
        "import jitcount\n"
        "from jax._src import xla_bridge\n"
        "assert not xla_bridge.backends_are_initialized()"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_importing_loads_no_library_that_only_printing_needs() -> None:
    done = run("import sys, jitcount; assert 'rich' not in sys.modules")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", jitcount.__all__)
def test_every_public_name_has_an_example(name: str) -> None:
    assert ">>>" in (getattr(jitcount, name).__doc__ or "")


# The way the data takes, left to right: a room knows itself and those to its left.
ROOMS = [
    "_jax",
    "observe",
    "targets",
    "explain",
    "recorder",
    "problem",
    "numerics",
    "ledger",
    "show",
    "suite",
    "pytest_plugin",
    "commands",
    "cli",
    "__main__",
]

# `print(log)` needs a table, and who waits for a target's compiler may want a progress bar.
DOORS = {("recorder/log.py", "show"), ("recorder/record.py", "show")}


def imports_of(file: Path) -> set[str]:
    """The rooms that a file imports, also inside functions."""
    rooms = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "jitcount":
            rooms |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jitcount."):
            rooms.add((node.module or "").split(".")[1])
    return rooms


def test_each_room_knows_only_those_to_its_left() -> None:
    wrong = []
    for file in sorted(SOURCE.rglob("*.py")):
        path = file.relative_to(SOURCE)
        room = path.parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        known = ROOMS[: ROOMS.index(room) + 1]
        wrong += [(path.as_posix(), other) for other in imports_of(file) if other not in known]
    assert set(wrong) == DOORS


def test_only_one_file_touches_jaxs_private_parts() -> None:
    touching = {file.parent.name for file in SOURCE.rglob("*.py") if "jax._src" in file.read_text()}
    assert touching == {"_jax"}
