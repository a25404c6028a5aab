"""SIGTERM, as a time limit or a preemption sends it: the files and the table are there."""

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from jitcount._ledger.ledger import read_ledger
from tests.helpers import ROOT, Finished, running

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has no such signals")

PROGRAM = """
import sys, time
import jax, jax.numpy as jnp, numpy as np

@jax.jit
def step(x):
    return 2 * x

step(np.ones(3, np.float32))
"""

WAITS = PROGRAM + "print('go', flush=True)\ntime.sleep(60)\n"

COMPILES = """
def slow(x):
    for i in range(400):
        x = jnp.sin(x @ x) + jnp.cos(x * i)
    return x

lowered = jax.jit(slow).lower(np.ones((32, 32), np.float32))
print("go", flush=True)
lowered.compile()
print("not reached", flush=True)
"""

OWN = """
import signal
signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
"""


def ended(folder: Path, program: str, *words: str, **env: str) -> Finished:
    """Run a program, and send it SIGTERM once it has printed ``go``."""
    (folder / "train.py").write_text(program)
    with running(*words, "train.py", cwd=folder, env={"COLUMNS": "100", **env}) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "go\n", process.communicate(timeout=60)
        process.send_signal(signal.SIGTERM)
        stdout, stderr = process.communicate(timeout=60)
    return Finished("", process.returncode, stdout, stderr)


def test_what_was_compiled_is_shown_and_kept_and_the_program_ends_by_the_signal(
    tmp_path: Path,
) -> None:
    files = ("--ledger", "run.json", "--profile-trace", "trace.json")
    done = ended(tmp_path, WAITS, "-m", "jitcount", "run", *files)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "")
    first, second, *_ = done.stderr.splitlines()
    assert first == "jitcount: SIGTERM came: this is what was compiled until then"
    assert second.startswith("1 compile took ")
    assert done.stderr.splitlines()[-1] == (
        "jitcount: all of it is in run.json: jitcount compare OTHER run.json says what differs "
        "from another run's"
    )
    ledger = read_ledger(tmp_path / "run.json")
    assert ledger.counts() == {"step": 1}
    assert ledger.environment.platform == "cpu"
    assert 0 < ledger.started_at < ledger.ended_at
    assert '"call site": "train.py:9 in <module>"' in (tmp_path / "trace.json").read_text()


@pytest.mark.thorough
def test_it_need_not_wait_for_a_compile(tmp_path: Path) -> None:
    done = ended(tmp_path, PROGRAM + COMPILES, "-m", "jitcount", "run", "--ledger", "run.json")
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "")
    assert read_ledger(tmp_path / "run.json").counts() == {"step": 1}


@pytest.mark.thorough
def test_a_handler_of_the_programs_own_ends_it_as_ever(tmp_path: Path) -> None:
    done = ended(tmp_path, OWN + WAITS, "-m", "jitcount", "run", "--ledger", "run.json")
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith("1 compile took ")
    assert read_ledger(tmp_path / "run.json").counts() == {"step": 1}


FIRST = """
import os, signal, sys
program = os.fork()  # in the new namespace, where this child is the first process
if program == 0:
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
signal.signal(signal.SIGTERM, lambda *_: os.kill(program, signal.SIGTERM))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(program, 0)[1]))
"""


@pytest.mark.thorough
def test_the_first_process_of_a_container_is_not_ended_and_reports_at_its_end(
    tmp_path: Path,
) -> None:
    if not shutil.which("unshare"):
        pytest.skip("no way to a namespace of its own")
    goes_on = "print('go', flush=True)\ntime.sleep(3)\nstep(np.ones(4, np.float32))\n"
    before = f"import os; assert os.getpid() == 1\n{PROGRAM}"
    (tmp_path / "train.py").write_text(before + goes_on)
    run = ["-m", "jitcount", "run", "--ledger", "run.json", "train.py"]
    words = ["unshare", "--pid", sys.executable, "-c", FIRST, *run]
    starts = f"import os; os.execvp('unshare', {words!r})"
    with running("-c", starts, cwd=tmp_path) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "go\n":
            pytest.skip("namespaces are not allowed here")
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0
    said = "jitcount: SIGTERM came: this is what was compiled until then"
    assert stderr.startswith(f"{said}\n1 compile took ")
    assert "\n2 compiles took " in stderr
    assert read_ledger(tmp_path / "run.json").counts() == {"step": 2}


@pytest.mark.thorough
def test_with_the_variable_the_table_is_shown(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    site = f"import site\nsite.addsitedir({str(ROOT / 'src')!r})\n"
    (tmp_path / "first" / "sitecustomize.py").write_text(site)
    places = os.pathsep.join([str(tmp_path / "first"), os.environ.get("PYTHONPATH", "")])
    done = ended(tmp_path, WAITS, JITCOUNT="1", PYTHONPATH=places)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "")
    first, second, *_ = done.stderr.splitlines()
    assert first == "jitcount: SIGTERM came: this is what was compiled until then"
    assert second.startswith("1 compile took ")
    assert done.stderr.count("first call of step") == 1
