"""SIGTERM during a run of pytest: the ledger has what was compiled until then."""

import os
import signal
from pathlib import Path

import pytest

from jitcount._ledger.ledger import read_ledger
from tests.helpers import Finished, Project, running, wait_until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has no such signals")

TESTS = """
from pathlib import Path
import time

@pytest.fixture(scope="session")
def warm():
    jax.jit(lambda x: x - 1)(arr(2))

@pytest.mark.parametrize("n", [1, 2])
def test_step(n, warm):
    step(arr(n))
    Path(f"did{n}").touch()

def test_that_waits(warm):
    step(arr(5))
    while not (Path("did1").exists() and Path("did2").exists()):
        time.sleep(0.05)
    time.sleep(1)
    Path("waits").touch()
    time.sleep(60)
"""


def ended(folder: Path, *options: str) -> Finished:
    project = Project(folder)
    project.write("test_it.py", TESTS)
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--compile-ledger=new/run.json")
    with running(*words, *options, cwd=folder, env={"PYTEST_XDIST_WORKER": None}) as process:
        wait_until((folder / "waits").exists, process, within=120)
        process.send_signal(signal.SIGTERM)
        stdout, stderr = process.communicate(timeout=120)
    return Finished("", process.returncode, stdout, stderr)


@pytest.mark.thorough
def test_it_leaves_the_ledger_with_the_test_that_ran(tmp_path: Path) -> None:
    done = ended(tmp_path)
    assert done.returncode == -signal.SIGTERM
    ledger = read_ledger(tmp_path / "new" / "run.json")
    assert {name: entry.counts() for name, entry in ledger.cases.items()} == {
        "in fixture warm (session)": {"<lambda>": 1},
        "test_it.py::test_step[1]": {"step": 1},
        "test_it.py::test_step[2]": {"step": 1},
        "test_it.py::test_that_waits": {"step": 1},
    }
    assert ledger.environment.platform == "cpu"


@pytest.mark.thorough
def test_above_workers_it_leaves_what_their_reports_have_brought(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    done = ended(tmp_path, "-n2")
    assert done.returncode == -signal.SIGTERM
    ledger = read_ledger(tmp_path / "new" / "run.json")
    assert {name for name in ledger.cases if "[" in name} == {
        "test_it.py::test_step[1]",
        "test_it.py::test_step[2]",
    }
    assert ledger.environment.platform == "cpu"


def test_a_run_without_jax_imports_none_for_its_ledger_and_says_that_a_folder_was_made(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path)
    project.write("test_it.py", "def test_plain(): pass\n", head="")
    ask = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('jax' in sys.modules, file=sys.__stdout__))\n"
    )
    (tmp_path / "conftest.py").write_text(ask)
    done = project.run("--compile-ledger=new/run.json", env={"JAX_PLATFORMS": None})
    assert done.returncode == 0
    said = "jitcount: the folder new was not there: it was made for run.json"
    assert said in done.stdout.splitlines()
    assert done.stdout.splitlines()[-1] == "False"
    ledger = read_ledger(tmp_path / "new" / "run.json")
    assert (list(ledger.cases), ledger.environment.platform) == (["test_it.py::test_plain"], "")
