"""A compiler that misbehaves spoils one compile, and nothing else."""

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jitcount
from jitcount._record.log import CompileLog
from jitcount._targets import compilers, process
from jitcount._targets.compilers import Compilers
from jitcount._targets.names import Target, TargetTooSmallError
from jitcount._targets.result import OnTarget
from tests.helpers import has_ended, python, running, wait_until

pytestmark = pytest.mark.thorough

X = np.ones(3, np.float32)
PRINTED = "it last printed:\ncompiling"


def named(name: str) -> Callable[[object], object]:
    def program(x: jax.Array) -> jax.Array:
        return 2 * x

    program.__name__ = name
    return jax.jit(program)


def compile_all(*names: str, timeout: float = 60.0) -> CompileLog:
    with jitcount.record(targets=["cpu"], timeout=timeout) as log:
        for name in names:
            named(name)(X)
    return log


def result(log: CompileLog, name: str) -> OnTarget:
    (found,) = (c.on["cpu"] for c in log.compiles if c.function == name)
    return found


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "crash",
            f"the compiler was ended by SIGABRT (Aborted); {PRINTED}\nCheck failed: no mercy",
        ),
        ("leaves", f"the compiler ended with exit code 3; {PRINTED}"),
        ("refused", "UNIMPLEMENTED: not so"),
    ],
)
@pytest.mark.usefixtures("fake_compilers")
def test_a_compile_that_goes_wrong_has_the_reason_and_the_others_go_on(
    name: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    jax.devices()  # JAX's own plugins print when they are looked for
    capfd.readouterr()
    log = compile_all("good", name, "better")
    assert result(log, name).error == message
    good, better = result(log, "good"), result(log, "better")
    assert (good.error, better.error, better.compile_s) == (None, None, 0.5)
    is_same_process = good.flops == better.flops
    assert is_same_process is (name == "refused")
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(sys.platform != "linux", reason="the numbers and words are Linux's")
@pytest.mark.usefixtures("fake_compilers")
def test_a_compiler_that_ends_by_any_signal_is_named_in_words() -> None:
    expected = {
        "signal_4": "SIGILL (Illegal instruction)",
        "signal_7": "SIGBUS (Bus error)",
        "signal_9": "SIGKILL (Killed)",
        "signal_11": "SIGSEGV (Segmentation fault)",
        "signal_34": "SIGRTMIN (Real-time signal 0)",
        "signal_40": "signal 40 (Real-time signal 6)",
        "signal_64": "SIGRTMAX (Real-time signal 30)",
    }
    log = compile_all(*expected)
    found = {name: result(log, name).error for name in expected}
    assert found == {
        name: f"the compiler was ended by {words}; {PRINTED}" for name, words in expected.items()
    }


@pytest.mark.parametrize("number", [32, 99])
def test_a_signal_that_has_no_name_is_shown_by_its_number(number: int) -> None:
    assert process.signal_name(number) == f"signal {number} (unknown to this system)"


@pytest.mark.usefixtures("fake_compilers")
def test_a_refusal_keeps_the_seconds_until_then() -> None:
    refused = result(compile_all("refused"), "refused")
    assert refused == OnTarget(
        target="cpu",
        fingerprint=refused.fingerprint,
        compile_s=0.25,
        error="UNIMPLEMENTED: not so",
    )


@pytest.mark.usefixtures("fake_compilers")
def test_an_answer_that_is_none_spoils_only_its_compile() -> None:
    log = compile_all("good", "garbage", "better")
    assert result(log, "garbage").error == "Expecting value: line 1 column 1 (char 0)"
    good, better = result(log, "good"), result(log, "better")
    assert (good.error, better.error) == (None, None)
    assert good.flops != better.flops  # by another process: this one is not to be trusted


def test_a_compiler_that_ended_while_idle_is_replaced(fake_compilers: Compilers) -> None:
    compile_all("good")
    (pid,) = fake_compilers.pids()
    os.kill(pid, signal.SIGKILL)
    assert has_ended(pid)
    assert result(compile_all("better"), "better").error is None


@pytest.mark.usefixtures("fake_compilers")
def test_a_compile_that_hangs_is_stopped_and_the_others_go_on() -> None:
    log = compile_all("hang", "better", timeout=1.5)
    assert result(log, "hang").error == (
        f"the compiler was stopped: it took longer than 1.5 s; {PRINTED}"
    )
    assert result(log, "better").error is None


SLOW_START = "the compiler was stopped: it took longer than 1.5 s to start"


@pytest.mark.usefixtures("fake_compilers")
def test_the_timeout_holds_while_a_compiler_starts() -> None:
    Path("hang_at_start").touch()
    names = [f"program_{n}" for n in range(5)]
    begin = time.monotonic()
    log = compile_all(*names, timeout=1.5)
    assert time.monotonic() - begin < 60  # of 300 s for a start that nobody waits for
    assert [result(log, name) for name in names] == 5 * [
        OnTarget(target="cpu", error=f"{SLOW_START}; it last printed:\nlooking for a device")
    ]
    Path("hang_at_start").unlink()
    assert result(compile_all("good", timeout=60), "good").error is None


@pytest.mark.usefixtures("fake_compilers")
def test_a_start_that_nobody_waits_for_has_more_time() -> None:
    Path("hang_at_start").touch()
    with jitcount.record(targets=["cpu"], timeout=0.5) as log:
        time.sleep(1)
        (pid,) = compilers.compilers().pids()
        assert not has_ended(pid, within=0.1)
        named("good")(X)
    assert str(result(log, "good").error).startswith(
        "the compiler was stopped: it took longer than 0.5 s to start"
    )


def test_a_timer_that_comes_too_late_ends_nothing(fake_compilers: Compilers) -> None:
    compile_all("good")
    (made,) = fake_compilers._processes
    made._give_up(made._request - 1, 1.0)
    assert not has_ended(made.pid, within=0.2)
    assert not made.timed_out


@pytest.mark.usefixtures("fake_compilers")
def test_ctrl_c_while_a_compiler_starts_waits_for_nothing() -> None:
    Path("hang_at_start").touch()
    with pytest.raises(KeyboardInterrupt), jitcount.record(targets=["cpu"]) as log:  # noqa: PT012
        named("good")(X)
        raise KeyboardInterrupt
    assert result(log, "good") == OnTarget(target="cpu", error="stopped before it was compiled")


@pytest.mark.usefixtures("fake_compilers")
def test_a_compiler_that_cannot_be_started_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "command", lambda: ["/nowhere/python"])
    error = result(compile_all("good"), "good").error
    assert error == (
        "the compiler could not be started: [Errno 2] No such file or directory: '/nowhere/python'"
    )


@pytest.mark.usefixtures("fake_compilers")
def test_the_same_program_is_compiled_once_and_all_get_the_result() -> None:
    program = named("good")
    with jitcount.record(targets=["cpu"]) as log:
        for _ in range(3):
            program(X)
            jax.clear_caches()
    first, *others = [c.on["cpu"] for c in log.compiles]
    assert len(others) == 2
    assert all(other is first for other in others)


@pytest.mark.usefixtures("fake_compilers")
def test_every_program_that_was_sent_has_its_fingerprint_whatever_became_of_it() -> None:
    names = "good", "refused", "crash", "leaves", "garbage", "hang"
    log = compile_all(*names, timeout=1.5)
    fingerprints = {name: result(log, name).fingerprint for name in names}
    assert len(set(fingerprints.values())) == len(names)
    assert all(re.fullmatch("[0-9a-f]{32}", found) for found in fingerprints.values())
    jax.clear_caches()
    again = compile_all(*reversed(names), timeout=1.5)  # another block, other processes
    assert {name: result(again, name).fingerprint for name in names} == fingerprints


@pytest.mark.usefixtures("fake_compilers")
def test_a_program_that_was_not_sent_has_no_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_machine(target: Target, devices: int) -> dict[str, Any]:
        raise TargetTooSmallError(f"{target.name} has fewer than {devices}")

    lowered = jax.jit(lambda x: x + 1).lower(X)
    with jitcount.record(targets=["cpu"]) as log:
        lowered.compile()
    assert str(log.compiles[0].on["cpu"].error).startswith("not carried over: it was lowered")
    with monkeypatch.context() as patch:
        patch.setattr("jitcount._targets.compilers.topology", no_machine)
        small = result(compile_all("small"), "small")
    monkeypatch.setattr(process, "command", lambda: ["/nowhere/python"])
    for pid in compilers.compilers().pids():
        os.kill(pid, signal.SIGKILL)
        assert has_ended(pid)
    unstarted = result(compile_all("unstarted"), "unstarted")
    assert small.error == "cpu has fewer than 1"
    assert str(unstarted.error).startswith("the compiler could not be started")
    found = [on.fingerprint for on in (log.compiles[0].on["cpu"], small, unstarted)]
    assert found == ["", "", ""]


@pytest.mark.usefixtures("fake_compilers")
def test_ctrl_c_leaves_a_fingerprint_where_the_compiler_was_at_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jitcount._targets.compilers.cores", lambda: 1)
    with pytest.raises(KeyboardInterrupt), jitcount.record(targets=["cpu"]) as log:  # noqa: PT012
        named("hang")(X)
        named("good")(X)
        while not Path("hanging").exists():
            time.sleep(0.05)
        raise KeyboardInterrupt
    hang, good = result(log, "hang"), result(log, "good")
    assert hang.error == good.error == "stopped before it was compiled"
    assert (len(hang.fingerprint), good.fingerprint) == (32, "")


@pytest.mark.parametrize(
    ("cores", "programs", "expected"), [(2, 1, 1), (2, 10, 2), (1, 10, 1), (8, 3, 1)]
)
def test_another_compiler_starts_where_many_wait_and_a_core_is_free(
    fake_compilers: Compilers,
    monkeypatch: pytest.MonkeyPatch,
    cores: int,
    programs: int,
    expected: int,
) -> None:
    monkeypatch.setattr("jitcount._targets.compilers.cores", lambda: cores)
    compile_all(*[f"slow_{number}" for number in range(programs)])
    assert len(fake_compilers.pids()) == expected


def test_a_compiler_stays_for_the_next_block(fake_compilers: Compilers) -> None:
    compile_all("good")
    before = fake_compilers.pids()
    jax.clear_caches()
    compile_all("better")
    assert fake_compilers.pids() == before


@pytest.mark.usefixtures("fake_compilers")
def test_an_exception_in_the_block_is_the_users_and_the_results_are_there() -> None:
    with pytest.raises(ZeroDivisionError), jitcount.record(targets=["cpu"]) as log:  # noqa: PT012
        named("good")(X)
        raise ZeroDivisionError
    assert result(log, "good").error is None


@pytest.mark.usefixtures("fake_compilers")
def test_ctrl_c_in_the_block_waits_for_nothing() -> None:
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt), jitcount.record(targets=["cpu"]) as log:  # noqa: PT012
        named("hang")(X)
        raise KeyboardInterrupt
    assert time.monotonic() - begin < 30
    assert result(log, "hang").error == "stopped before it was compiled"


WAITING = """
import sys
import jax, numpy as np, jitcount
from jitcount._targets import process

if sys.argv[1:]:
    process.command = lambda: sys.argv[1:]

@jax.jit
def hang(x):
    return 2 * x

with jitcount.record(targets=["cpu"]):
    hang(np.ones(3, np.float32))
    if not sys.argv[1:]:
        import time
        from jitcount._targets.compilers import compilers
        while not compilers().pids():
            time.sleep(0.05)
        print(*compilers().pids(), flush=True)
        time.sleep(600)
"""


def test_ctrl_c_while_compilers_are_waited_for_ends_everything_at_once(
    tmp_path: Path, fake_command: list[str]
) -> None:
    (tmp_path / "waiting.py").write_text(WAITING)
    hanging = tmp_path / "hanging"
    with running("waiting.py", *fake_command, cwd=tmp_path) as process:
        wait_until(lambda: hanging.exists() and hanging.read_text(), process)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        _, stderr = process.communicate(timeout=30)
        assert time.monotonic() - begin < 10
        assert stderr.endswith("KeyboardInterrupt\n")
        assert has_ended(int(hanging.read_text()))


def test_compilers_end_when_their_process_is_killed(tmp_path: Path) -> None:
    (tmp_path / "waiting.py").write_text(WAITING)
    with running("waiting.py", cwd=tmp_path) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        process.kill()
        process.communicate()
        assert pids
        assert all(has_ended(pid) for pid in pids)


@pytest.mark.skipif(sys.platform != "linux", reason="nothing else ends a process that is stopped")
def test_a_stopped_compiler_does_not_outlive_a_killed_process(tmp_path: Path) -> None:
    (tmp_path / "waiting.py").write_text(WAITING)
    with running("waiting.py", cwd=tmp_path) as process:
        assert process.stdout is not None
        (pid,) = [int(pid) for pid in process.stdout.readline().split()]
        # The first that it does is to ask for a signal, the second to start a thread.
        wait_until(lambda: len(list(Path(f"/proc/{pid}/task").iterdir())) > 1, process)
        os.kill(pid, signal.SIGSTOP)
        process.kill()
        process.communicate()
        assert has_ended(pid)


CONSTANT = """
import gc, json, os, sys, time, weakref
from pathlib import Path
import jax, numpy as np, jitcount
from jitcount._targets import process
from jitcount._targets.lowering import CompileRequest
from jitcount._targets.compilers import Job

process.command = lambda: sys.argv[1:]

def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20

def kept():
    gc.collect()
    return [type(x).__name__ for x in gc.get_objects() if isinstance(x, CompileRequest | Job)]

def run(size):
    constant = np.ones(size, np.float32)
    jax.jit(lambda x: x + constant)(np.float32(1))
    while not all("cpu" in c.on for c in log.compiles):
        time.sleep(0.05)
    return weakref.ref(constant)

with jitcount.record(targets=["cpu"]) as log:
    run(3)
    before = resident()
    alive = [run(50 * 2**20 // 4 + n) for n in range(4)]
    for _ in range(100):  # the thread that told the last result has a line to go
        if kept():
            time.sleep(0.05)
    print(json.dumps([kept(), [x() is None for x in alive], resident() - before,
                      [c.on["cpu"].error for c in log.compiles if c.function == "<lambda>"]]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_program_that_is_answered_is_not_kept_for_the_rest_of_the_block(
    tmp_path: Path, fake_command: list[str]
) -> None:
    done = python("-c", CONSTANT, *fake_command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    kept, are_gone, more, errors = json.loads(done.stdout)
    assert (kept, are_gone, errors) == ([], 4 * [True], 5 * [None])
    assert more < 100  # MB, of 4 times 50 and of their copies


@pytest.mark.usefixtures("fake_compilers")
def test_no_more_programs_are_carried_than_compilers_can_take_in_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jitcount._targets.session._ENOUGH", 1)
    most = 0
    submit = compilers.Compilers.submit

    def counted(self: Compilers, job: compilers.Job) -> None:
        nonlocal most
        submit(self, job)
        with self._changed:
            most = max(most, sum(len(each.waiting) for each in self._platforms.values()))

    monkeypatch.setattr(compilers.Compilers, "submit", counted)
    log = compile_all(*[f"slow_{number}" for number in range(6)])
    assert {c.on["cpu"].error for c in log.compiles} == {None}
    assert most == 1


FORKING = """
import os, sys, warnings
import jax, numpy as np, jitcount

warnings.simplefilter("ignore")
try:
    with jitcount.record(targets=["cpu"]) as log:
        jax.jit(lambda x: 2 * x)(np.ones(3, np.float32))
        child = os.fork()
        if child == 0:
            sys.exit("the block ends")
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
except SystemExit:
    os._exit(7)  # JAX itself does not always survive its own end in a child
print(log.compiles[0].on["cpu"].error)
"""


FORKING_WITH_THE_LOCK = """
import os, signal, threading, warnings
from jitcount._observe.in_flight import LoweredProgram
from jitcount._targets.session import Session

warnings.simplefilter("ignore")
session, is_held = Session([], keep_hlo=False, timeout=1), threading.Event()

def hold():
    with session._changed:
        is_held.set()
        threading.Event().wait()

threading.Thread(target=hold, daemon=True).start()
is_held.wait()
child = os.fork()
if child == 0:
    signal.alarm(10)
    lowered_program = LoweredProgram()
    session.add_program(lowered_program)
    os._exit(len(session.results_of(lowered_program).on))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_needs_no_lock_that_the_parent_held() -> None:
    done = python("-c", FORKING_WITH_THE_LOCK, timeout=60)
    assert done.stdout == "0\n"


def test_a_forked_child_waits_for_nothing() -> None:
    done = python("-c", FORKING, timeout=60)
    assert (done.returncode, done.stdout) == (0, "7\nNone\n")
