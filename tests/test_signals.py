"""What calls back before a signal ends a process, and leaves all else as the program has it."""

import os
import signal
import sys
import textwrap
from pathlib import Path

import pytest

from tests.helpers import Finished, python, running

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has no such signals")

BEGIN = """
import faulthandler, os, signal, sys, threading, time
from jitcount import _signals

def tell(name):
    print("told of", name, flush=True)

_signals.before_end_by_signal(tell)
"""


def ended(program: str, *signals: str, before: str = BEGIN) -> Finished:
    """Run a program, and send it signals once it has printed ``go``."""
    program = before + textwrap.dedent(program)
    with running("-W", "ignore", "-c", program) as process:
        assert process.stdout is not None
        printed = ""
        while not printed.endswith("go\n"):
            line = process.stdout.readline()
            assert line, process.communicate(timeout=60)
            printed += line
        for each in signals:
            process.send_signal(signal.Signals[each])
        stdout, stderr = process.communicate(timeout=60)
    return Finished("", process.returncode, printed.removesuffix("go\n") + stdout, stderr)


WAIT = """
print("go", flush=True)
time.sleep(60)
print("not reached")
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_it_calls_back_and_the_process_ends_by_the_signal(name: str) -> None:
    done = ended(WAIT, name)
    assert (done.returncode, done.stdout, done.stderr) == (
        -signal.Signals[name],
        f"told of {name}\n",
        "",
    )


def test_a_program_finds_what_it_would_find_without_it() -> None:
    done = ended(
        """
        found = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)]
        print(found == [signal.SIG_DFL] * 2, threading.active_count(), signal.set_wakeup_fd(-1))
        print(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        print("go", flush=True)
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True 1 -1\nset()\n", "")


def test_it_calls_back_while_c_code_waits() -> None:
    """XLA compiles for minutes, in which no handler of Python's would run."""
    done = ended(
        """
        import ctypes
        print("go", flush=True)
        while True:
            ctypes.CDLL(None).usleep(500_000)  # as all of ctypes: without the interpreter's lock
        """,
        "SIGTERM",
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, "told of SIGTERM\n", "")


OWN = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"


@pytest.mark.parametrize(
    ("before", "then"),
    [
        (BEGIN.replace("_signals.before", OWN + "_signals.before"), ""),
        (BEGIN, OWN),
        (BEGIN, "import os\n" + OWN + "if os.fork() == 0: os._exit(0)\n"),
    ],
    ids=["set before", "set after", "with a fork"],
)
def test_a_handler_of_the_programs_own_is_the_only_one(before: str, then: str) -> None:
    done = ended(then + WAIT, "SIGTERM", before=before)
    assert (done.returncode, done.stdout, done.stderr) == (5, "", "")


def test_a_signal_that_is_ignored_is_ignored() -> None:
    ignored = BEGIN.replace("_signals.before", "signal.signal(1, signal.SIG_IGN)\n_signals.before")
    done = ended("print('go', flush=True)\ntime.sleep(1)\n", "SIGHUP", before=ignored)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_signal_that_is_waited_for_goes_to_who_waits() -> None:
    done = ended(
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        print("go", flush=True)
        print(signal.sigwait([signal.SIGTERM]).name)
        """,
        "SIGTERM",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "SIGTERM\n", "")


def test_asyncio_handles_it_and_its_wakeup_is_its_own() -> None:
    done = ended(
        """
        import asyncio

        async def main():
            stop = asyncio.Event()
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
            print("go", flush=True)
            await stop.wait()
            print("stopped")

        asyncio.run(main())
        """,
        "SIGTERM",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "stopped\n", "")


def test_faulthandler_for_the_programs_own_use_is_its_own() -> None:
    """Also after a fork, around which ours is given back and set again."""
    done = ended(
        """
        file = open(os.devnull, "w")
        faulthandler.register(signal.SIGTERM, file=file, all_threads=False)
        if os.fork() == 0:
            os._exit(0)
        print("go", flush=True)
        time.sleep(1)
        print(file.tell() or os.fstat(file.fileno()).st_rdev > 0)
        """,
        "SIGTERM",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


FORKS = """
import multiprocessing

def work():
    time.sleep(60)

children = [multiprocessing.get_context("fork").Process(target=work) for _ in range(20)]
for child in children:
    child.start()
    child.terminate()  # at once, as a pool does
for child in children:
    child.join()
print({child.exitcode for child in children})
print("go", flush=True)
time.sleep(60)
"""


def test_a_fork_ends_by_itself_and_its_parent_goes_on() -> None:
    done = ended(FORKS, "SIGTERM")
    assert (done.returncode, done.stdout, done.stderr) == (
        -signal.SIGTERM,
        "{-15}\ntold of SIGTERM\n",
        "",
    )


def test_a_program_of_another_kind_that_is_started_has_the_systems_handling() -> None:
    done = ended(
        f"""
        import subprocess
        child = subprocess.Popen([{sys.executable!r}, "-c", "import time; time.sleep(60)"])
        child.terminate()
        print(child.wait())
        print("go", flush=True)
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "-15\n", "")


def test_once_forgotten_it_does_not_call_back() -> None:
    done = ended("_signals.forget(tell)\n" + WAIT, "SIGTERM")
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, "", "")


def test_a_callback_that_raises_or_hangs_keeps_nobody_from_ending() -> None:
    done = ended(
        """
        def fail(name): raise SystemExit(9)
        def hang(name): time.sleep(60)
        _signals._PATIENCE_S = 0.1
        _signals._callbacks[:] = [fail, tell, hang]
        print("go", flush=True)
        time.sleep(60)
        """,
        "SIGTERM",
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, "told of SIGTERM\n", "")


def test_a_program_that_ends_meanwhile_ends_by_the_signal() -> None:
    done = ended(
        """
        def slowly(name):
            told.set()
            time.sleep(0.5)

        told = threading.Event()
        _signals.before_end_by_signal(slowly)
        print("go", flush=True)
        told.wait()
        _signals.forget(tell)  # as a run does at its end
        print("not reached", flush=True)
        """,
        "SIGTERM",
    )
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "told of SIGTERM\n")


def run_to_its_end(program: str) -> Finished:
    """Run a program that sends itself its signal."""
    return python("-W", "ignore", "-c", BEGIN + textwrap.dedent(program), timeout=60)


def test_a_signal_that_comes_as_the_program_ends_is_not_lost() -> None:
    """Its thread has had no turn yet: the one that ends never lets go of the interpreter's lock."""
    done = run_to_its_end(
        """
        sys.setswitchinterval(60)
        os.kill(os.getpid(), signal.SIGTERM)
        _signals.forget(tell)
        os.write(1, b"not reached")
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, "told of SIGTERM\n", "")


def test_a_signal_that_comes_in_the_last_exit_handler_is_not_lost() -> None:
    """Python 3.12 and later start no threads then."""
    done = run_to_its_end(
        """
        import atexit
        atexit.register(_signals.forget, tell)
        atexit.register(os.kill, os.getpid(), signal.SIGTERM)
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, "told of SIGTERM\n", "")


def test_a_program_that_closes_all_files_while_a_fork_lives_is_ended_and_keeps_its_own(
    tmp_path: Path,
) -> None:
    done = ended(
        f"""
        os.chdir({str(tmp_path)!r})
        if os.fork() == 0:
            os.closerange(0, 3)
            time.sleep(60)
            os._exit(0)
        os.closerange(3, 200)
        logs = [os.open(f"{{each}}.log", os.O_CREAT | os.O_RDWR) for each in range(12)]
        time.sleep(0.5)
        if os.fork() == 0:  # after which nothing of ours is set again
            os._exit(0)
        print("go", flush=True)
        time.sleep(5)
        """,
        "SIGTERM",
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, "", "")
    assert [log.read_text() for log in tmp_path.iterdir()] == [""] * 12
