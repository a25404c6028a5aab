"""``JITCOUNT=1`` in real processes, with the lines that the wheel brings for the start of Python.

These are read where packages are installed; here they are read where they are written, so that it
is these lines that are tested. Where jitcount is installed, Python reads both: it starts once.
"""

import os
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest

from tests.helpers import ROOT, Finished, python

SOURCE = ROOT / "src"

PROGRAM = """
import sys
import jax, numpy as np
jax.jit(lambda x: 2 * x)(np.ones(3, np.float32))
print("end")
"""


@pytest.fixture
def start(tmp_path: Path) -> Path:
    """A folder from which Python reads our lines at its start, and what it can import before us."""
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "sitecustomize.py").write_text(
        f"import site\nsite.addsitedir({str(SOURCE)!r})\n"
    )
    return tmp_path


def run(start: Path, value: str | None, program: str = PROGRAM) -> Finished:
    (start / "train.py").write_text(program)
    places = [str(start / "first"), os.environ.get("PYTHONPATH", "")]
    env = {"JITCOUNT": value, "PYTHONPATH": os.pathsep.join(filter(None, places))}
    return python("train.py", cwd=start, env=env)


# --- When --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["1", "True", " yes ", "ON"])
def test_it_is_on(start: Path, value: str) -> None:
    # Whether it waits for JAX is seen without JAX: its finder is there.
    done = run(start, value, "import sys\nprint(type(sys.meta_path[0]).__module__)")
    assert (done.stdout, done.stderr) == ("jitcount._after_jax\n", "")


@pytest.mark.parametrize("value", [None, "", "0", "False", "no", "OFF"])
def test_it_is_off(start: Path, value: str | None) -> None:
    done = run(start, value, "import sys\nprint('jitcount' in sys.modules)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


def test_another_value_is_refused_once_and_the_program_runs(start: Path) -> None:
    done = run(start, "ja", "import jitcount_autostart as a; a.start(); print('end')")
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "end\n",
        "jitcount: JITCOUNT is 'ja'; it can be 1 or 0 (true or false, yes or no, on or off)\n",
    )


def test_a_program_without_jax_is_left_alone(start: Path) -> None:
    done = run(start, "1", "import sys; print('jax' in sys.modules, 'numpy' in sys.modules)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "False False\n", "")


# --- What is shown -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "before",
    ["", "import jitcount", "from jitcount import record", "import jitcount._observe.values"],
)
def test_the_table_is_shown_once_whoever_imports_jax(start: Path, before: str) -> None:
    done = run(start, "1", before + PROGRAM)
    assert (done.returncode, done.stdout) == (0, "end\n")
    assert done.stderr.startswith("1 compile took ")
    assert done.stderr.count("<lambda>") == 2  # in one row, and in its cause


@pytest.mark.thorough
def test_what_comes_at_the_end_is_counted_and_a_command_of_ours_tells_by_itself(
    start: Path,
) -> None:
    program = "import atexit\natexit.register(lambda: jax.jit(lambda: 1)())" + PROGRAM
    assert run(start, "1", program).stderr.startswith("2 compiles took ")
    (start / "other.py").write_text(program)
    whole = "import sys; from jitcount._cli.main import main; sys.exit(main(['run', 'other.py']))"
    assert run(start, "1", whole).stderr.count("2 compiles took ") == 1


CHILDREN = """
import multiprocessing, sys

def work():
    import jax, numpy as np
    jax.jit(lambda x: x + 3)(np.ones(3, np.float32))

if __name__ == "__main__":
    children = [multiprocessing.get_context(method).Process(target=work, name=method)
                for method in ("spawn", "fork", "forkserver")]
    for child in children:
        child.start()
    for child in children:
        child.join()
    print([child.exitcode for child in children], "jax" in sys.modules)
"""


@pytest.mark.thorough
def test_each_child_of_multiprocessing_shows_its_table_with_its_name(start: Path) -> None:
    done = run(start, "1", CHILDREN)
    assert (done.stdout, done.returncode) == ("[0, 0, 0] False\n", 0)
    shown = re.findall(r"^in (\w+) \(process \d+\):\n1 compile took ", done.stderr, re.MULTILINE)
    assert sorted(shown) == ["fork", "forkserver", "spawn"]
    assert done.stderr.count("compile took ") == 3


# --- Whatever is wrong with us, the program runs -------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        "raise ImportError('no msgspec')",
        "raise SystemExit(7)",
        "raise BaseException('of Rust, a panic is this')",
    ],
)
def test_a_broken_dependency_breaks_no_import(start: Path, wrong: str) -> None:
    (start / "first" / "msgspec.py").write_text(wrong)
    done = run(start, "1")
    kind = wrong.split()[1].partition("(")[0]
    said = wrong.partition("(")[2].strip("')")
    assert (done.returncode, done.stdout) == (0, "end\n")
    assert done.stderr == f"jitcount: could not count: {kind}: {said}\n"


def test_a_table_that_cannot_be_shown_is_one_line(start: Path) -> None:
    spoilt = "sys.modules['rich.text'] = None\n"
    folded = "import os; os.environ['COLUMNS'] = '50'\n" + PROGRAM + spoilt + "sys.exit(3)"
    done = run(start, "1", folded)
    assert (done.returncode, done.stdout) == (3, "end\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith("jitcount: could not tell: ModuleNotFoundError: import of rich.text")


# --- What the wheel brings -----------------------------------------------------------------------


def test_the_wheel_brings_both_files_and_they_name_the_same_function() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {
        "src/jitcount.pth": "jitcount.pth",
        "src/jitcount.start": "jitcount.start",
    }
    assert "src/jitcount_autostart.py" in wheel["packages"]
    (line,) = (SOURCE / "jitcount.pth").read_text().splitlines()
    assert line.startswith("import ")  # what else is a path
    assert '__import__("jitcount_autostart").start()' in line
    lines = (SOURCE / "jitcount.start").read_text().splitlines()
    (entry,) = [line for line in lines if not line.startswith("#")]
    start = pkgutil.resolve_name(entry)  # as Python does
    assert (start.__module__, start.__name__) == ("jitcount_autostart", "start")
