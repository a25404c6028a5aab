"""Programs are run again in real processes, and what comes of it is one sentence."""

from __future__ import annotations

import functools
import os
import re
import signal
import zipfile
from typing import TYPE_CHECKING

import pytest

from jitcount._try_calls.jitted_call import JittedCall
from jitcount._try_calls.processes import Program
from jitcount._try_calls.sentences import sentence
from jitcount._try_calls.trying import Trial, try_calls
from tests.helpers import has_ended, jitcount, running, wait_until

if TYPE_CHECKING:
    from pathlib import Path

START = """
import sys, os
import jax, jax.numpy as jnp, numpy as np

def net(x):
    for size in range(1, 6):
        x = jnp.tanh(jnp.ones((size, x.shape[0])) @ x) + size
    return {"y": x, "key": jax.random.key(3), "n": 3}
"""
CALLED = f"{START}\nfound = net(np.ones(7, np.float32))\n"
LINE = len(CALLED.splitlines())


def tried(  # noqa: PLR0913 (each is given by its name)
    folder: Path,
    text: str,
    *,
    code: int = 0,
    calls: str = "net",
    line: int = LINE,
    file: str = "main.py",
    words: tuple[str, ...] = ("main.py",),
    is_module: bool = False,
    stdin: tuple[int, int] | None = None,
    environment: dict[str, str] | None = None,
    first_run_s: float = 60.0,  # a busy machine has ten minutes
) -> Trial:
    path = folder / file
    if ".zip" not in file:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    program = Program(words, is_module, directory=str(folder), stdin=stdin)
    program.environment.update({"JITCOUNT": "1"} | (environment or {}))
    object.__setattr__(program, "started_at", program.started_at - first_run_s)
    found: list[Trial] = []
    try_calls(program, code, [JittedCall(str(path), line, calls, site="here")], found)
    (trial,) = found
    return trial


def test_a_call_under_a_jit_is_measured_beside_the_call_as_it_is(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    text = CALLED + (
        "print(found['y'])\n"
        f"jax.config.update('jax_compilation_cache_dir', {str(cache)!r})\n"
        "jax.config.update('jax_enable_compilation_cache', True)\n"
        "jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.0)\n"
        "jax.jit(lambda x: x + 1)(1.0)\n"
        "sys.exit(3)\n"
    )
    trial = tried(tmp_path, text, code=3)
    assert trial.before is not None
    assert trial.after is not None
    assert trial.before.compiles > trial.after.compiles >= 2
    assert trial.results is not None
    assert trial.results.is_same
    assert not cache.exists()  # no run writes to it, and none is faster by it
    assert re.match(r"tried: jax.jit\(net\)\(...\) at here: \d+ → \d+ compiles", sentence(trial))


FAILS = CALLED.replace("    return {", "    if x.sum() > 3:\n        x = x + 1\n    return {")


def test_a_call_that_cannot_be_jitted_says_why_and_is_kept(tmp_path: Path) -> None:
    trial = tried(tmp_path, FAILS, line=LINE + 2)
    assert sentence(trial) == (
        "tried: jax.jit(net)(...) at here: cannot be jitted: TracerBoolConversionError "
        "at main.py:8: keep the call as it is"
    )


@pytest.mark.thorough
def test_a_call_that_cannot_be_jitted_in_a_program_that_goes_on_without(tmp_path: Path) -> None:
    text = FAILS.replace("found = net", "try:\n    found = net") + "except Exception: pass\n"
    trial = tried(tmp_path, text, line=LINE + 3)
    assert trial.failed == "cannot be jitted: TracerBoolConversionError at main.py:8"


LEAKS = f"{START}\nkept = []\ndef leak(x):\n    kept.append(x + 1)\n    return x * 2\n"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "code", "calls", "said"),
    [
        (
            f"{LEAKS}leak(jnp.ones(3))\nprint(kept[0] + 1)\n",
            0,
            "leak",
            (
                "tried: jax.jit(leak)(...) at here: the program ends with exit code 1, not 0: "
                "UnexpectedTracerError at main.py:15: keep the call as it is"
            ),
        ),
        (
            f"{LEAKS}leak(jnp.ones(int(input())))\n",
            0,
            "leak",
            (
                "not tried: jax.jit(leak)(...) at here: run again, the program ended with exit "
                "code 1, not 0: EOFError: EOF when reading a line at main.py:14"
            ),
        ),
        (
            f"{LEAKS}net(jnp.ones(3))\nleak(3)\nos._exit(4)\n",
            4,
            "net",
            (
                "not tried: jax.jit(net)(...) at here: run again, the program was left with exit "
                "code 4"
            ),
        ),
        (
            f"{LEAKS}net(jnp.ones(3))\nos.kill(os.getpid(), 9)\n",
            0,
            "net",
            (
                "not tried: jax.jit(net)(...) at here: run again, the program was ended by "
                "SIGKILL (Killed)"
            ),
        ),
        (
            f"{LEAKS}print('done')\nif False: leak(3)\n",
            0,
            "leak",
            "not tried: jax.jit(leak)(...) at here: run again, the program did not come to it",
        ),
        (
            f"{LEAKS}net(jnp.ones(3))\nsys.exit('no more data')\n",
            0,
            "net",
            (
                "not tried: jax.jit(net)(...) at here: run again, the program ended with exit "
                "code 1, not 0: no more data"
            ),
        ),
    ],
)
def test_a_program_that_does_not_run_again_as_it_did(
    tmp_path: Path, text: str, code: int, calls: str, said: str
) -> None:
    at = next(
        i
        for i, line in enumerate(text.splitlines(), 1)
        if f"{calls}(" in line and "def" not in line
    )
    assert sentence(tried(tmp_path, text, code=code, calls=calls, line=at)) == said


@pytest.mark.thorough
def test_a_call_that_hangs_under_a_jit_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jitcount._try_calls.processes._LEAST_TIMEOUT_S", 45.0)
    text = CALLED.replace(
        "    return {",
        "    if isinstance(x, jax.core.Tracer):\n"
        "        import subprocess\n"
        "        child = subprocess.Popen(['sleep', '600'])\n"
        "        open('child', 'w').write(str(child.pid))\n"
        "        child.wait()\n"
        "    return {",
    )
    trial = tried(tmp_path, text, line=LINE + 5, first_run_s=0.0)
    assert trial.failed == "the program took longer than 45 s"
    assert has_ended(int((tmp_path / "child").read_text()))


@pytest.mark.thorough
def test_a_port_that_the_first_run_still_holds(tmp_path: Path) -> None:
    import socket  # noqa: PLC0415

    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        opens = f"import socket; socket.create_server(('127.0.0.1', {port}))\n"
        trial = tried(tmp_path, CALLED + opens)
    assert trial.not_tried.startswith(
        "run again, the program ended with exit code 1, not 0: OSError: [Errno "
    )
    assert f" at main.py:{LINE + 1}" in trial.not_tried


@pytest.mark.thorough
def test_stdin_that_is_a_file_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("skipped\n7\n")
    text = CALLED.replace("np.ones(7", "np.ones(int(input())")
    with (tmp_path / "in").open("rb") as file:
        trial = tried(tmp_path, text, stdin=(file.fileno(), len("skipped\n")))
        assert file.tell() == 0
    assert trial.before is not None


@pytest.mark.thorough
def test_a_module_a_folder_and_an_archive_are_run_as_they_were(tmp_path: Path) -> None:
    check = CALLED + "assert __name__ == '__main__' and sys.argv[1:] == ['--n', '3']\n"
    given = ("--n", "3")
    run = functools.partial(tried, tmp_path, check)
    assert run(file="package/train.py", words=("package.train", *given), is_module=True).before
    assert run(file="folder/__main__.py", words=("folder", *given)).before
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("__main__.py", check)
    assert run(file="all.zip/__main__.py", words=("all.zip", *given)).before


@pytest.mark.thorough
def test_processes_that_the_program_starts(tmp_path: Path) -> None:
    text = CALLED.replace("\nfound", "\nif __name__ == '__main__': found") + (
        "    import multiprocessing\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        assert pool.map(abs, [-2]) == [2]\n"
    ).replace("    ", "  ", 1).replace("\n    ", "\n  ")
    text = text.replace(": found", ":\n  found")
    trial = tried(tmp_path, text, line=LINE + 1)
    assert trial.before is not None, trial


LOOP = f"""{START}
class Model:
    def __init__(self, scale): self.scale = scale
    def apply(self, x): return jnp.tanh(x * self.scale) + 1 - self.scale
models = [Model(1.5), Model(2.5)]
for i in range(6):
    y = models[i % 2].apply(np.full(3, i, np.float32))
"""


@pytest.mark.thorough
def test_a_call_in_a_loop_is_jitted_once_for_each_function(tmp_path: Path) -> None:
    trial = tried(tmp_path, LOOP, calls="models[i % 2].apply", line=len(LOOP.splitlines()))
    assert trial.before is not None
    assert trial.after is not None
    assert trial.after.compiles == 2  # models
    assert trial.results is not None
    assert trial.results.is_same


@pytest.mark.thorough
def test_results_that_differ_from_run_to_run_are_not_blamed_on_the_jit(tmp_path: Path) -> None:
    trial = tried(tmp_path, CALLED.replace('"n": 3', '"n": jnp.float32(os.getpid())'))
    assert trial.results is not None
    assert trial.results.text == "its results differ from run to run"


# --- The option -----------------------------------------------------------------------------------

# What is called is a library's, so that its line is the user's.
LIBRARY = START.replace("\nimport jax,", "\nopen('runs', 'a').write('x')\nimport jax,")
MAIN = "import numpy as np, lib\nfound = lib.net(np.ones(7, np.float32))\nraise SystemExit(3)\n"


def program_with_library(folder: Path, library: str = LIBRARY) -> dict[str, str]:
    packages = folder / "site-packages"
    packages.mkdir()
    (packages / "lib.py").write_text(library)
    (folder / "main.py").write_text(MAIN)
    return {"PYTHONPATH": str(packages)}


@pytest.mark.thorough
def test_the_report_ends_with_what_came_of_it(tmp_path: Path) -> None:
    env = program_with_library(tmp_path)
    done = jitcount("run", "--what-if=calls", "main.py", cwd=tmp_path, env=env)
    assert done.returncode == 3
    *_, heading, line = done.stderr.splitlines()
    assert heading == "Calls under a jit"
    where = r"jax\.jit\(lib\.net\)\(\.\.\.\) at main\.py:2 in <module>"
    assert re.match(rf"  tried: {where}: \d+ → \d compiles?, ", line), line
    assert len((tmp_path / "runs").read_text()) >= 3


def test_without_the_option_the_program_runs_once(tmp_path: Path) -> None:
    env = program_with_library(tmp_path)
    done = jitcount("run", "--what-if", "main.py", cwd=tmp_path, env=env)
    assert done.returncode == 3
    assert (tmp_path / "runs").read_text() == "x"
    assert "Calls under a jit" not in done.stderr


def test_a_program_with_no_call_to_jit_is_not_run_again(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import jax\nopen('runs', 'a').write('x')\n")
    done = jitcount("run", "--what-if=calls", "main.py", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.endswith("Calls under a jit\nnone is advised\n")
    assert (tmp_path / "runs").read_text() == "x"


HANGS = LIBRARY.replace(
    "\nimport jax,",
    "\nif len(open('runs').read()) == 2:\n"
    "    import time\n"
    "    open('half', 'w').write(str(os.getpid()))\n"
    "    os.rename('half', 'hanging')\n"
    "    time.sleep(600)\n"
    "import jax,",
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_what_runs_again_ends_with_the_command(tmp_path: Path, number: signal.Signals) -> None:
    env = program_with_library(tmp_path, HANGS.replace("write('x')", "write('x') and 0"))
    hanging = tmp_path / "hanging"
    command = ("-m", "jitcount", "run", "--what-if=calls", "main.py")
    with running(*command, cwd=tmp_path, env=env) as process:
        wait_until(hanging.exists, process)
        os.kill(process.pid, number)
        _, stderr = process.communicate(timeout=60)
        assert has_ended(int(hanging.read_text()))
    assert process.returncode == -number
    if number == signal.SIGINT:
        said = "jitcount: --what-if=calls was interrupted: not all calls were tried"
        assert [line for line in stderr.splitlines() if line.startswith("jitcount:")] == [said]
        assert stderr.endswith("Calls under a jit\n  1 more call not tried\n")


def test_it_is_refused_where_another_machine_is_emulated(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("")
    options = ("--what-if=calls", "--as-if", "tpu:v5e")
    done = jitcount("run", *options, "main.py", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "jitcount run: error: --what-if=calls measures what this machine runs: not with --as-if"
    )
