"""``jitcount run`` is held against ``python``: the same output, the same errors, the same end.

The scripts are small and import no JAX: each is run twice.
"""

import os
import py_compile
import re
import signal
import sys
import time
import zipfile
from pathlib import Path

import pytest

from tests.helpers import python, running, wait_until

NOTHING = "nothing was compiled\n"

NAMES = """
import sys, atexit
main = sys.modules["__main__"]
def tell(when):
    print(when, main is sys.modules["__main__"], {
        name: type(value) if name == "__loader__" else value
        for name, value in vars(main).items()
        if name.startswith("__") and name != "__spec__"
    }, getattr(__spec__, "name", None), sys.argv, sys.path, sys.flags)
tell("now")
atexit.register(tell, "at exit")
"""

# By name: what a script does, and the words that follow its own.
SCRIPTS = {
    "names": NAMES,
    "options of ours": f"{NAMES}#--max 3 --ledger x -- --live -h",
    "names after exit": f"{NAMES}sys.exit(7)",
    "names after an error": f"{NAMES}1 / 0",
    "exit -2": "import sys; sys.exit(-2)",
    "exit 2**40": "import sys; sys.exit(2**40 + 3)",
    "exit 2**70": "import sys; sys.exit(2**70)",
    "exit 256": "import sys; sys.exit(256)",
    "exit True": "import sys; sys.exit(True)",
    "exit None": "raise SystemExit",
    "exit with a text": "import sys; sys.exit('no more')",
    "exit with a tuple": "import sys; sys.exit((1, 2))",
    "exit of a class": "class End(SystemExit):\n    code = property(lambda s: 1 / 0)\nraise End(3)",
    "exit with a text that raises": (
        "class Bad:\n    def __str__(self): raise KeyError(1)\nraise SystemExit(Bad())"
    ),
    "exit in silence": "import sys; sys.stderr = None; sys.exit('still said')",
    "an error in a function": "def f():\n    raise KeyError('x')\nf()",
    "a cause and a context": "try:\n    1 / 0\nexcept Exception as e:\n    raise KeyError from e",
    "a syntax error": "print(1)\nx = = 3\n",
    "Ctrl-C of its own": f"{NAMES}raise KeyboardInterrupt",
    "a kind of Ctrl-C": "class Stop(KeyboardInterrupt): pass\nraise Stop('enough')",
    "a hook": "import sys; sys.excepthook = lambda *a: print(a[1], sys.exc_info()); 1 / 0",
    "a hook that raises": (
        "import sys\ndef hook(*a): raise KeyError('hook')\nsys.excepthook = hook\n1 / 0"
    ),
    "a hook that exits": "import sys\ndef hook(*a): sys.exit(9)\nsys.excepthook = hook\n1 / 0",
    "no hook": "import sys\ndel sys.excepthook\n1 / 0",
    "what is left of an error": (
        "import atexit, sys\natexit.register(lambda: print(sys.last_type, sys.last_value))\n1 / 0"
    ),
    "stderr is None": "import sys; sys.stderr = None; 1 / 0",
    "stderr is closed": "import sys; sys.stderr.close(); 1 / 0",
    "stdout is closed": "import sys; print(1); sys.stdout.close()",
    "stderr is another": (
        "import atexit, io, sys; sys.stderr = kept = io.StringIO()\n"
        "atexit.register(lambda: print(repr(kept.getvalue())))\nsys.exit('kept')"
    ),
    "threads": (
        "import atexit, threading, time\n"
        "def late():\n    threading.main_thread().join(); time.sleep(0.1); print('late', x)\n"
        "threading.Thread(target=late).start(); x = 1\n"
        "atexit.register(print, 'handler')\n"
        "atexit.register(lambda: print(threading.main_thread().is_alive()))\n"
        "print('end')\nraise SystemExit(4)"
    ),
    "an exit handler that raises": "import atexit\natexit.register(lambda: 1 / 0)\n",
    "an exit handler that exits": "import atexit, sys\natexit.register(lambda: sys.exit(5))\n",
    "pickles at exit": (
        "import atexit, pickle\nclass A: pass\n"
        "atexit.register(lambda: print(type(pickle.loads(pickle.dumps(A()))).__name__))"
    ),
    "a fork": (
        "import os, sys, atexit\natexit.register(lambda: print('handler', flush=True))\n"
        "if os.fork(): os.wait(); sys.exit(2)\nprint('child', flush=True); sys.exit(3)"
    ),
    "a future": "from typing import get_type_hints\ndef f(x: int): pass\nprint(f.__annotations__)",
    "finalizers": "class A:\n    def __del__(self): print('gone')\na = A()",
}


# Here Python 3.12 leaves an error of its own behind, and shows it in the end.
ERRORS_OF_PYTHON = {"exit 2**70", "exit with a text that raises"}


def write(folder: Path, name: str, text: str) -> str:
    file = folder / f"{name.replace(' ', '_').replace('*', '')}.py"
    file.write_text(text)
    return file.name


def plainly(stderr: str) -> str:
    """Without what differs from process to process."""
    return re.sub(r"0x[0-9a-f]+|refcount : \d+", "…", stderr)


def differences(folder: Path, *words: str, plain: tuple[str, ...] = (), **env: str) -> str:
    """What is other than with Python, for which the words may be other ones."""
    ours = python("-m", "jitcount", "run", *words, cwd=folder, env=env)
    theirs = python(*(plain or words), cwd=folder, env=env)
    expected = (theirs.returncode, theirs.stdout, plainly(theirs.stderr) + NOTHING)
    found = (ours.returncode, ours.stdout, plainly(ours.stderr))
    return "" if found == expected else f"{words}:\n{found}\ninstead of\n{expected}"


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_and_ends_as_with_python(name: str, tmp_path: Path) -> None:
    text = SCRIPTS[name]
    words = text.rpartition("#")[2].split() if "#" in text else []
    script = write(tmp_path, name, text)
    if name in ERRORS_OF_PYTHON:
        ours = python("-m", "jitcount", "run", script, cwd=tmp_path)
        assert ours.returncode == python(script, cwd=tmp_path).returncode
        return
    assert differences(tmp_path, script, *words) == ""


@pytest.mark.thorough
def test_all_that_python_can_run_is_run(tmp_path: Path) -> None:
    script = write(tmp_path, "names", NAMES)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "__main__.py").write_text(NAMES)
    (tmp_path / "folder" / "__init__.py").touch()
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("__main__.py", NAMES)
    py_compile.compile(str(tmp_path / script), str(tmp_path / "bytes.pyc"))
    (tmp_path / "link.py").symlink_to(tmp_path / "folder" / "__main__.py")
    (tmp_path / "latin.py").write_bytes("# coding: latin-1\nprint(ascii('é'))\n".encode("latin-1"))
    (tmp_path / "bom.py").write_bytes(b"\xef\xbb\xbfprint(ascii('\xc3\xa9'))\r\n")
    (tmp_path / "empty").mkdir()
    found = [
        differences(tmp_path, *words)
        for words in [
            [f"./{script}"],
            [str(tmp_path / script), "a"],
            ["folder", "a"],
            ["./archive.zip"],
            ["bytes.pyc"],
            ["link.py"],
            ["latin.py"],
            ["bom.py"],
            ["empty"],
            ["-m", "names", "--max", "3"],
            ["-m", "folder", "--", "a"],
            ["-m", "nowhere"],
        ]
    ]
    found.append(differences(tmp_path, "--", script, "--live", plain=(script, "--live")))
    found.append(differences(tmp_path, script, PYTHONSAFEPATH="1", PYTHONPATH=_HERE))
    assert "\n".join(filter(None, found)) == ""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no named pipes")
def test_a_script_is_read_from_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.py"
    os.mkfifo(pipe)
    with running("-m", "jitcount", "run", "pipe.py", "a", cwd=tmp_path) as process:
        pipe.write_text("import sys; print(sys.argv); sys.exit(7)")
        assert process.communicate() == ("['pipe.py', 'a']\n", NOTHING)
        assert process.returncode == 7


_HERE = os.pathsep.join(dict.fromkeys(place for place in sys.path if place))


@pytest.mark.parametrize("error", ["ImportError", "RuntimeError", "KeyboardInterrupt"])
def test_an_import_of_jax_that_fails_is_shown_as_with_python(tmp_path: Path, error: str) -> None:
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text("import jax.inner")
    (tmp_path / "jax" / "inner.py").write_text(f"raise {error}('not today')")
    script = write(tmp_path, "train", "def main():\n    import jax\nmain()\n")
    assert differences(tmp_path, script) == ""


def test_ctrl_c_ends_a_program_as_with_python(tmp_path: Path) -> None:
    script = write(
        tmp_path,
        "waits",
        "import atexit, pathlib, sys, time\n"
        "print('not flushed')\n"
        "atexit.register(print, 'handler')\n"
        "class A:\n    def __del__(self): print('gone')\na = A()\n"
        "pathlib.Path(sys.argv[1]).touch()\n"
        "time.sleep(60)\n",
    )
    ends = []
    for words in (["-m", "jitcount", "run", script, "one"], [script, "two"]):
        with running(*words, cwd=tmp_path) as process:
            wait_until((tmp_path / words[-1]).exists, process)
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=30)
            ends.append((process.returncode, stdout, stderr))
    ours, theirs = ends
    assert ours == (theirs[0], theirs[1], theirs[2] + NOTHING)
    assert ours[0] == -signal.SIGINT
