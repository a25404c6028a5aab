"""Ctrl-C and SIGTERM at any moment of a run: no file is damaged, no exit code lost.

And no traceback is ours.
"""

import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import jitcount
from jitcount._ledger.budget import read_budget
from jitcount._ledger.ledger import read_ledger
from tests.attack.mutations import IS_FULL, called, chance, numbers
from tests.helpers import STEP, Finished, Process, running

RUNS = numbers(full=110, few=1, chunks=11)
ENDED = numbers(full=100, few=1, chunks=10)
TESTS = numbers(full=90, few=1, chunks=9)

PROGRAM = """
import sys
from pathlib import Path
import jax, numpy as np

@jax.jit
def step(x):
    return 2 * x

Path("began").touch()
for n in range(1, 20):
    step(np.ones(n, np.float32))
Path("ended").touch()
sys.exit(7)
"""

TEST = """
from pathlib import Path
Path("began").touch()

@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_step(n):
    assert step(arr(n)).shape == (n,)
"""

RUN = ("-m", "jitcount", "run", "--ledger", "out.json", "program.py")
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:benchmark")
UPDATE = (*PYTEST, "--compile-budget=budget.json", "--compile-update")


def interrupted(
    command: tuple[str, ...],
    folder: Path,
    moment: float,
    send: Callable[[Process], object] = lambda process: process.send_signal(signal.SIGINT),
) -> Finished:
    """Run a command and send Ctrl-C at a moment: in seconds, or so long after it has begun."""
    environment = {"COLUMNS": "100", "PYTHONDONTWRITEBYTECODE": "1"}
    with running(*command, cwd=folder, env=environment) as process:
        while not IS_FULL and not (folder / "began").exists() and process.poll() is None:
            time.sleep(0.01)
        end = time.monotonic() + moment
        while process.poll() is None and time.monotonic() < end:
            time.sleep(min(0.01, max(0.0, end - time.monotonic())))
        if process.poll() is None:
            send(process)
        stdout, stderr = process.communicate(timeout=120)
    return Finished(command, process.returncode, stdout, stderr)


def whole(command: tuple[str, ...], folder: Path) -> float:
    """Run a command to its end; how long it took."""
    begin = time.monotonic()
    done = interrupted(command, folder, 600)
    assert done.returncode in {0, 7}, done
    for mark in ("began", "ended"):
        (folder / mark).unlink(missing_ok=True)
    return time.monotonic() - begin


OURS = str(Path(jitcount.__file__).parent)


def of_ours(stderr: str) -> list[str]:
    """The tracebacks that begin in our code, or that end there in something else than Ctrl-C.

    Ctrl-C in the midst of a compile may well find our code at work; the traceback is then one of
    the program's, as ever. Python and JAX have some of their own, where Ctrl-C comes at a bad time.
    """
    found = []
    for text in re.findall(r"(?m)^Traceback.*\n(?:[ \t].*\n)*\S.*", stderr):
        files = [file for file in re.findall(r'  File "([^"]+)"', text) if "runpy" not in file]
        is_ctrl_c = text.splitlines()[-1].startswith("KeyboardInterrupt")
        if files and files[0 if is_ctrl_c else -1].startswith(OURS):
            found.append(text)
    return found


def test_a_traceback_is_ours_where_it_begins_with_us_or_fails_in_us() -> None:
    frames = {"ours": f'  File "{OURS}/cli.py", line 1\n', "other": '  File "a.py", line 1\n'}
    for first, last, end, expected in (
        ("ours", "other", "KeyboardInterrupt", 1),
        ("other", "ours", "KeyboardInterrupt", 0),
        ("other", "ours", "KeyError: 'x'", 1),
        ("ours", "other", "KeyError: 'x'", 0),
    ):
        text = f"Traceback (most recent call last):\n{frames[first]}{frames[last]}{end}\n"
        assert len(of_ours(f"before\n{text}after\n")) == expected, text


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    folder = tmp_path_factory.mktemp("program")
    (folder / "program.py").write_text(PROGRAM)
    return folder, whole(RUN, folder)


@pytest.mark.thorough
@pytest.mark.parametrize("chunk", RUNS, ids=str)
def test_an_interrupted_run_leaves_a_whole_ledger_and_its_exit_code(
    chunk: range, program: tuple[Path, float]
) -> None:
    folder, seconds = program
    for number in chunk:
        before = (folder / "out.json").read_bytes()
        moment = chance("interrupt", number).uniform(0, 1.05 * seconds if IS_FULL else 0.1)
        done = interrupted(RUN, folder, moment)
        where = (called("interrupt", number), moment, done)
        has_begun, has_ended = (folder / "began").exists(), (folder / "ended").exists()
        for mark in ("began", "ended"):
            (folder / mark).unlink(missing_ok=True)
        if not has_begun:  # the start of Python and of JAX, whose modules do not all bear Ctrl-C
            assert done.returncode not in {0, 7}, where
        else:
            allowed = {7, -signal.SIGINT} if has_ended else {-signal.SIGINT}
            assert done.returncode in allowed, where
            assert of_ours(done.stderr) == [], where
        assert {path.name for path in folder.iterdir()} == {"program.py", "out.json"}, where
        if (folder / "out.json").read_bytes() != before:
            assert list(read_ledger(folder / "out.json").cases) == ["program.py"], where


COUNTS = PROGRAM.replace(
    "    step(np.ones(n, np.float32))",
    "    step(np.ones(n, np.float32))\n    Path('done').write_text(str(n))\n    time.sleep(0.02)",
).replace("import sys", "import sys, time")


@pytest.mark.thorough
@pytest.mark.parametrize("chunk", ENDED, ids=str)
def test_a_run_that_is_ended_has_kept_all_that_it_had_compiled(
    chunk: range, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(COUNTS)
    done_so_far = tmp_path / "done"
    seconds = whole(RUN, tmp_path)
    for number in chunk:
        done_so_far.unlink(missing_ok=True)
        before = (tmp_path / "out.json").read_bytes()
        had_done: list[int] = []

        def end(process: Process, had_done: list[int] = had_done) -> None:
            had_done.append(int(done_so_far.read_text() or "0") if done_so_far.exists() else 0)
            process.send_signal(signal.SIGTERM)

        moment = chance("ended", number).uniform(0, 1.05 * seconds if IS_FULL else 0.2)
        done = interrupted(RUN, tmp_path, moment, end)
        where = (called("ended", number), moment, had_done, done.returncode, done.stderr)
        assert done.returncode in ({7, -15} if (tmp_path / "ended").exists() else {-15}), where
        for mark in ("began", "ended", "done"):
            (tmp_path / mark).unlink(missing_ok=True)
        assert "Traceback" not in done.stderr, where
        assert {path.name for path in tmp_path.iterdir()} == {"program.py", "out.json"}, where
        kept = read_ledger(tmp_path / "out.json")
        assert list(kept.cases) == ["program.py"], where
        if sum(had_done):
            assert (tmp_path / "out.json").read_bytes() != before, where
            assert kept.counts()["step"] >= sum(had_done), where


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    folder = tmp_path_factory.mktemp("project")
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_it.py").write_text(STEP + TEST)
    return folder, whole(UPDATE, folder)


@pytest.mark.thorough
@pytest.mark.parametrize("chunk", TESTS, ids=str)
def test_an_interrupted_update_leaves_the_budget_as_it_was(
    chunk: range, project: tuple[Path, float]
) -> None:
    folder, seconds = project
    before = read_budget(folder / "budget.json")
    assert len(before.tests) == 5
    for number in chunk:
        moment = chance("update", number).uniform(0, 1.05 * seconds if IS_FULL else 0.05)
        done = interrupted(UPDATE, folder, moment)
        where = (called("update", number), moment, done)
        assert (done.returncode == 0) <= ("5 passed" in done.stdout), where
        if (folder / "began").exists():
            (folder / "began").unlink()
            assert of_ours(done.stderr) == [], where
            assert "INTERNALERROR" not in done.stdout, where
        assert read_budget(folder / "budget.json") == before, where
        names = {path.name for path in folder.iterdir()}
        assert names == {"pytest.ini", "test_it.py", "budget.json"}, where
