"""The command in real processes: a program runs as ever, and is counted beside."""

import json
import os
import re
import shlex
import stat
import sys
from pathlib import Path

import pytest

from jitcount._cli.main import main
from jitcount._ledger.ledger import read_ledger
from jitcount._targets.names import TARGETS
from tests.expected import expect
from tests.helpers import WITH_FAKE_COMPILER, jitcount, python

PROGRAM = """
import sys
import jax, numpy as np

@jax.jit
def step(x):
    return 2 * x

def main():
    for length in 3, 5, 3:
        step(np.ones(length, np.float32))
    print(__name__, sys.argv, sys.path[0])

main()
"""


def test_a_script_runs_as_ever_and_its_compiles_are_shown_beside(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    plain = python("train.py", "--lr", "0.1", cwd=tmp_path)
    options = ("--live", "--max", "1", "--ledger", "out.json")
    counted = jitcount("run", *options, "train.py", "--lr", "0.1", cwd=tmp_path)
    assert counted.stdout == plain.stdout
    assert counted.returncode == 1
    first, *_, last = counted.stderr.splitlines()
    assert first.startswith("jitcount: step(x f32[5]) at train.py:11 in main, ")
    assert first.endswith(": axis 0 of x: 3 → 5 [JC101]")
    assert "What to fix" in counted.stderr
    assert last == "jitcount: 2 compiles, and --max allows 1"
    cases = json.loads((tmp_path / "out.json").read_text())["cases"]
    assert [c["function"] for c in cases["train.py"]["compiles"]] == ["step", "step"]


def test_a_module_runs_as_with_python_m(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    plain = python("-m", "train", "a", cwd=tmp_path)
    counted = jitcount("run", "-m", "train", "a", cwd=tmp_path)
    assert counted.stdout == plain.stdout
    assert counted.returncode == 0
    assert counted.stderr.startswith("2 compiles took ")


LATE = """
import atexit, pickle, threading

class Kept:
    pass

def first_handler():  # it comes last, when JAX's own has taken its backends down
    step(np.ones(6, np.float32))
    print("first handler", type(pickle.loads(pickle.dumps(Kept()))).__name__)

atexit.register(first_handler)
import jax, numpy as np

@jax.jit
def step(x):
    return 2 * x

def thread():
    threading.main_thread().join()
    step(np.ones(4, np.float32))
    print("thread")

atexit.register(lambda: print("handler", step(np.ones(5, np.float32)).shape))
threading.Thread(target=thread).start()
step(np.ones(3, np.float32))
print("end")
"""


@pytest.mark.thorough
def test_what_threads_and_exit_handlers_compile_is_counted_kept_and_held_to_the_limit(
    tmp_path: Path,
) -> None:
    (tmp_path / "late.py").write_text(LATE)
    options = ("--max", "3", "--ledger", "out.json", "--target", "cpu")
    counted = jitcount("run", *options, "late.py", cwd=tmp_path)
    assert counted.stdout == "end\nthread\nhandler (5,)\nfirst handler Kept\n"
    assert counted.stderr.splitlines()[-1] == "jitcount: 4 compiles, and --max allows 3"
    assert counted.returncode == 1
    compiles = json.loads((tmp_path / "out.json").read_text())["cases"]["late.py"]["compiles"]
    assert [c["signature"] for c in compiles] == [[f"float32[{n}]"] for n in (3, 4, 5, 6)]
    assert [c["on"]["cpu"]["error"] for c in compiles] == [None] * 4


REFUSED = """
import jax, numpy as np

@jax.jit
def refused(x):
    return 2 * x

for length in 3, 4:
    refused(np.ones(length, np.float32))
"""


def test_what_a_target_refuses_can_end_with_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(WITH_FAKE_COMPILER + REFUSED)
    run = ("run", "--target", "cpu")
    assert jitcount(*run, "train.py", cwd=tmp_path).returncode == 0
    counted = jitcount(*run, "--fail-on-refusal", "train.py", cwd=tmp_path)
    assert counted.returncode == 1
    expect(
        counted.stderr.splitlines()[-2:],
        [
            "  refused ×2 at train.py:12 in <module>: UNIMPLEMENTED: not so",
            "jitcount: 2 programs not compiled for cpu, and --fail-on-refusal is set",
        ],
    )
    (tmp_path / "train.py").write_text(WITH_FAKE_COMPILER + REFUSED.replace("refused", "taken"))
    assert jitcount(*run, "--fail-on-refusal", "train.py", cwd=tmp_path).returncode == 0


# --- Where nothing can be shown, the ledger is there all the same ---------------------------------

# The shell's command (`run` is ours, with a ledger), what the program does, and its exit code.
SILENCED = {
    "stderr is full": ("run 2>/dev/full", "sys.exit(3)", 3),
    "stderr is closed": ("run 2>&-", "sys.exit(3)", 3),
    "nobody reads": ("run 2>&1 | true; exit ${PIPESTATUS[0]}", "sys.stdout = None; sys.exit(3)", 3),
    "the file is another": (
        "run",
        "sys.stderr.close(); os.close(2); assert os.open('other', 65, 0o600) == 2; sys.exit(3)",
        3,
    ),
    "the hook and the stream raise": (
        "run",
        (
            "def fail(*given): raise KeyError\n"
            "sys.excepthook, sys.stderr = fail, type('S', (), {'write': fail, 'flush': print})()\n"
            "1 / 0"
        ),
        1,
    ),
}


@pytest.mark.thorough
def test_the_ledger_and_the_exit_code_are_there_where_nothing_can_be_shown(tmp_path: Path) -> None:
    lines = [
        f"import os, sys; trouble = {{name: what for name, (_, what, _) in {SILENCED!r}.items()}}",
        "import jax, numpy as np",
        "jax.jit(lambda x: 2 * x)(np.ones(3))",
        "exec(trouble[sys.argv[1]])",
    ]
    (tmp_path / "train.py").write_text("\n".join(lines))
    shell = ["run() { " + shlex.join([sys.executable, "-m", "jitcount", "run"]) +
             ' --ledger "$name.json" train.py "$name"; }']  # fmt: skip
    for name, (command, *_) in SILENCED.items():
        shell.append(f'name={shlex.quote(name)}; ({command}); echo "$name: $?" >> ends')
    (tmp_path / "all.sh").write_text("\n".join(shell))
    python("-c", "import os; os.execvp('bash', ['bash', 'all.sh'])", cwd=tmp_path)
    ends = (tmp_path / "ends").read_text().splitlines()
    assert ends == [f"{name}: {code}" for name, (*_, code) in SILENCED.items()]
    assert sorted(file.stem for file in tmp_path.glob("*.json")) == sorted(SILENCED)
    assert (tmp_path / "other").read_text() == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "jitcount run: error: run needs a SCRIPT, or -m and a MODULE"),
        (["run", "nowhere.py"], "jitcount run: error: no such file: nowhere.py"),
        (
            ["run", "a\x1b[2J\r\nb.py"],
            r"jitcount run: error: no such file: a\x1b[2J\r\nb.py",
        ),
        (
            ["compare", "a", "b", "--c\n\x07"],
            r"jitcount compare: error: no option is called --c\n\x07; jitcount compare --help",
        ),
        (
            ["run", "x" * 300],
            f"jitcount run: error: {'x' * 300}: cannot be read: File name too long",
        ),
        (["run", "--max", "-1", "x.py"], "error: argument --max: "),
        (
            ["run", "--ledger", "new.json", "--profile-trace", "./new.json", __file__],
            "new.json: is to hold the ledger, too; give --profile-trace another file",
        ),
        (
            ["run", "--fail-on-refusal", __file__],
            "error: --fail-on-refusal needs a --target that can refuse: --target tpu:v5e",
        ),
        (["run", "--target", "tpu:v9", __file__], "error: unknown target 'tpu:v9'; did you mean "),
    ],
)
def test_bad_usage_is_one_clear_line_and_exit_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_the_targets_are_listed() -> None:
    done = jitcount("targets")
    assert done.returncode == 0
    names = [line.split()[0] for line in done.stdout.splitlines() if ":" in line.split(" ")[0]]
    assert names == [target.name for target in TARGETS]


def test_a_program_is_compiled_for_targets_too(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    plain = python("train.py", cwd=tmp_path)
    options = ("--target", "cpu", "--ledger", "out.json")
    counted = jitcount("run", *options, "train.py", cwd=tmp_path)
    assert (counted.stdout, counted.returncode) == (plain.stdout, 0)
    assert "\nOn cpu: 2 compiles in " in counted.stderr
    compiles = json.loads((tmp_path / "out.json").read_text())["cases"]["train.py"]["compiles"]
    assert [c["on"]["cpu"]["error"] for c in compiles] == [None, None]


SETTINGS = """
import os, sys
os.environ["JAX_ENABLE_X64"] = "1"
os.environ["JAX_COMPILATION_CACHE_DIR"] = os.path.abspath("cache")
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=3"
os.environ["OMP_NUM_THREADS"] = "1"
print("JAX_PLATFORMS" in os.environ, os.environ.setdefault("JAX_PLATFORMS", "cpu,abacus"))
os.chdir("elsewhere")
import jax, numpy as np
print(jax.config.jax_platforms, jax.config.jax_compilation_cache_dir)
jax.config.update("jax_platforms", "cpu")
print(jax.jit(lambda x: 2 * x)(np.ones(3)).dtype, jax.device_count(), jax.default_backend())
print(len(os.listdir("../cache")) > 0, sorted(os.environ.items()))
"""


@pytest.mark.parametrize(
    "options", [(), pytest.param(("--target", "cpu"), marks=pytest.mark.thorough)]
)
def test_what_a_script_sets_before_it_imports_jax_holds(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "train.py").write_text(SETTINGS)
    set_by_it = [line.split('"')[1] for line in SETTINGS.splitlines() if "os.environ[" in line]
    unset = dict.fromkeys([*set_by_it, "JAX_NUM_CPU_DEVICES", "JAX_PLATFORMS"])
    plain = python("train.py", cwd=tmp_path, env=unset)
    counted = jitcount("run", *options, "--ledger", "o.json", "train.py", cwd=tmp_path, env=unset)
    assert "float64 3 cpu\nTrue " in plain.stdout
    assert _without_mark(counted.stdout) == _without_mark(plain.stdout)
    assert (tmp_path / "o.json").exists()  # where the command was given, not where the script is


QUEUE = """
import atexit, sys
import jax, numpy as np
print("jax is there")
from queue import mine
atexit.register(print, "handler")
jax.jit(mine)(np.ones(3, np.float32))
sys.exit(3)
"""


def test_a_module_of_the_scripts_own_is_imported_by_the_script(tmp_path: Path) -> None:
    (tmp_path / "queue.py").write_text("print('mine')\ndef mine(x): return x + 1\n")
    (tmp_path / "train.py").write_text(QUEUE)
    done = jitcount("run", "train.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "jax is there\nmine\nhandler\n")
    assert done.stderr.startswith("1 compile took ")


def test_a_program_that_breaks_python_keeps_its_end(tmp_path: Path) -> None:
    broken = QUEUE.replace("from queue import mine", "mine = abs").replace(
        "sys.exit(3)", "sys.modules['jitcount._record.log'].len = None\nsys.exit(3)"
    )
    (tmp_path / "train.py").write_text(broken)
    done = jitcount("run", "--ledger", "found.json", "train.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "jax is there\nhandler\n")
    assert done.stderr == "jitcount: could not tell: TypeError: 'NoneType' object is not callable\n"


def _without_mark(text: str) -> str:
    """Without the variable by which the tests find their processes."""
    return re.sub(r"\('JITCOUNT_TEST_PROCESS', '\w+'\)", "", text)


def test_a_script_without_jax_is_left_without_it(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("import sys\nprint('jax' in sys.modules)\n")
    done = jitcount("run", "plain.py", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("False\n", "nothing was compiled\n")


# Prints at the end whether JAX was imported for the files.
PLAIN = """
import sys
from jitcount._cli.main import main
print(main(["run", *sys.argv[1:]]), "jax" in sys.modules)
"""


def test_no_file_imports_jax_for_a_script_that_never_did(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("print('done')\n")
    options = ("--ledger", "out/run.json", "--profile-trace", "trace.json")
    done = python("-c", PLAIN, *options, "plain.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "done\n0 False\n")
    expect(
        done.stderr,
        "nothing was compiled\n"
        "jitcount: all of it is in out/run.json: jitcount compare OTHER out/run.json says what "
        "differs from another run's\n"
        "jitcount: the folder out was not there: it was made for run.json\n",
    )
    (name, entry), *others = read_ledger(tmp_path / "out" / "run.json").cases.items()
    assert (name, entry.compiles, others) == ("plain.py", (), [])
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"] == []


def test_no_backend_is_started_for_a_ledger(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("import jax")
    ask = "\nfrom jax._src import xla_bridge\nprint(xla_bridge.backends_are_initialized())"
    done = python("-c", PLAIN + ask, "--ledger", "run.json", "plain.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "0 True\nFalse\n")
    assert read_ledger(tmp_path / "run.json").environment.platform == ""


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_all_files_of_a_run_are_its_owners_alone(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("")
    options = ("--ledger", "run.json", "--profile-trace", "trace.json")
    jitcount("run", *options, "plain.py", cwd=tmp_path)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.glob("*.json")}
    assert modes == {"run.json": 0o600, "trace.json": 0o600}


TRAINER = """
import jax, jax.numpy as jnp

def train(steps):
    params = {"w": jax.random.normal(jax.random.key(0), (8, 8)), "b": jnp.zeros(8)}
    step = jax.jit(lambda p, x: jax.tree.map(lambda a: a - 0.1 * x.mean(), p))
    for i in range(steps):
        params = step(params, jnp.ones(8) / 3 * i)
        if float(params["b"].sum()) > 1e9:
            raise ValueError
    return params
"""


@pytest.mark.thorough
def test_a_trainer_of_a_library_gets_advice_that_can_be_followed(tmp_path: Path) -> None:
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "trainer.py").write_text(TRAINER)
    script = tmp_path / "main.py"
    script.write_text("import trainer\ntrainer.train(2)\n")
    path = {"PYTHONPATH": str(library)}
    first = jitcount("run", "main.py", cwd=tmp_path, env=path).stderr
    advised = re.findall(r"(→ .*)", first)
    settings = "JAX_COMPILATION_CACHE_DIR=FOLDER JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0"
    assert advised == [f"→ nothing to jit here; to keep them for the next run: {settings}"]
    assert "a library compiles them at trainer.py:5 in train, " in first

    kept = dict(each.split("=") for each in settings.split())
    kept["JAX_COMPILATION_CACHE_DIR"] = str(tmp_path / "cache")
    jitcount("run", "main.py", cwd=tmp_path, env=path | kept)
    again = jitcount("run", "main.py", cwd=tmp_path, env=path | kept).stderr
    assert again.startswith("0 compiles and ")
    assert "→" not in again
