"""The one way in which tests start a process leaves none behind."""

import ast
import signal
import sys
import time

import pytest

from tests.helpers import ROOT, has_ended, python, running, wait_until

# A process that has started another, out of its own session; both would stay.
LINGERING = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                         start_new_session=True)
print(child.pid, flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="what leaves its session is found in /proc")
@pytest.mark.parametrize("then", ["", "time.sleep(600)"], ids=["ends", "stays"])
def test_what_a_process_has_started_ends_with_the_block_however_it_ends(then: str) -> None:
    with pytest.raises(ZeroDivisionError), running("-c", LINGERING + then) as process:  # noqa: PT012
        assert process.stdout is not None
        grandchild = int(process.stdout.readline())
        assert not has_ended(grandchild, within=0.2)
        raise ZeroDivisionError
    assert process.returncode is not None
    assert has_ended(grandchild)


def test_a_process_that_takes_too_long_is_ended_and_what_it_printed_is_shown() -> None:
    begin = time.monotonic()
    with pytest.raises(pytest.fail.Exception) as raised:
        python("-c", LINGERING + "time.sleep(600)", timeout=2)
    shown, _, grandchild = str(raised.value).rpartition(" it printed:\n")
    assert shown == f"python -c {LINGERING}time.sleep(600) took longer than 2 s;"
    assert has_ended(int(grandchild))
    assert time.monotonic() - begin < 60


def test_what_never_comes_is_not_waited_for_forever() -> None:
    never = pytest.raises(AssertionError, match=r"^nothing came within 0.2 s")
    with running("-c", "import time; time.sleep(600)") as process, never:
        wait_until(lambda: False, process, within=0.2)
    with running("-c", "print('done')") as process, pytest.raises(AssertionError, match="done"):
        wait_until(lambda: False, process)


def test_ctrl_c_reaches_a_process_also_where_the_tests_ignore_it() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done = python("-c", "import signal; print(signal.getsignal(signal.SIGINT).__name__)")
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert (done.stdout, done.stderr) == ("default_int_handler\n", "")


def test_the_environment_can_be_added_to_and_taken_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "1")
    monkeypatch.setenv("TAKEN", "1")
    code = "import os; print([os.environ.get(n) for n in ('KEPT', 'TAKEN', 'ADDED')])"
    assert python("-c", code, env={"TAKEN": None, "ADDED": "2"}).stdout == "['1', None, '2']\n"


def test_no_test_starts_a_process_in_another_way() -> None:
    assert {
        file.name
        for file in (ROOT / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom) and "subprocess" in ast.unparse(node)
    } == {"helpers.py"}
