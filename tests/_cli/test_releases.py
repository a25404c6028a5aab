"""``--jax``: the same under other releases, side by side with what runs here."""

import json
import os
import re
import shutil
import signal
import sys
from pathlib import Path

import jax
import pytest

from jitcount._ledger.ledger import read_ledger
from tests.expected import expect
from tests.helpers import Finished, jitcount, running, wait_until

# In the environment of "7.8.9" it compiles a program more, and others.
PROGRAM = """
import sys
import jax, numpy as np

@jax.jit
def step(x):
    return 2 * x

@VERSION@
for length in (3, 4) if is_new else (3,):
    step(np.ones(length, np.float32))
print("arguments", *sys.argv[1:])
print("stdin", sys.stdin.readline().strip(), file=sys.stderr)
"""


FAILS = """
import sys
import jax
@VERSION@
if is_new:
    raise AttributeError("jax.core has no attribute Tracer")
jax.jit(lambda x: x)(1.0)
sys.exit(3)
"""

# The fake environments have the JAX of the tests.
VERSION = """
is_old, is_new = (f"jax-{release}" in sys.prefix for release in ("0.1.2", "7.8.9"))
jax.__version__ = "0.1.2" if is_old else "7.8.9" if is_new else jax.__version__
"""
PROGRAM, FAILS = (source.replace("@VERSION@", VERSION) for source in (PROGRAM, FAILS))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "a folder"
    found.mkdir()
    (found / "train.py").write_text(PROGRAM)
    return found


def run(folder: Path, *words: str, **env: str) -> Finished:
    return jitcount(
        "run", *words, cwd=folder,
        env={"COLUMNS": "200", "NO_COLOR": "1", "JAX_PLATFORMS": "cpu", **env},
    )  # fmt: skip


def comparison(done: Finished) -> list[str]:
    """What is shown of the comparison, without figures and the release of this run."""
    shown = done.stderr.replace(jax.__version__, "HERE")
    shown = re.sub(r"[\d.]+ (s|ms|µs)\b", "TIME", re.sub(r"\d+\.\d+×", "RATIO", shown))
    shown = re.sub(r"\d+(?= +(TIME|RATIO)$)", "OPERATIONS", shown, flags=re.MULTILINE)
    shown = re.sub(r"─+", "─", re.sub(r"(?<=\S) {2,}", "  ", shown))
    lines = shown.splitlines()
    begin = next(n for n, line in enumerate(lines) if re.match(r"jax \S+ against ", line))
    return lines[begin:]


@pytest.mark.usefixtures("fake_uv")
def test_each_release_is_compared_with_what_runs_here(folder: Path) -> None:
    words = ("--jax", "0.1.2", "--jax", "7.8.9", "--jax", "0.1.2", "--ledger", "run.json")
    done = run(folder, *words, "train.py", "--epochs", "3")
    assert done.returncode == 1
    assert done.stdout == "arguments --epochs 3\n"
    expect(
        comparison(done),
        [
            "jax 0.1.2 against jax HERE (here): no difference",
            "",
            "jax 7.8.9 against jax HERE (here): 1 difference",
            "  step: 1 → 2 compiles at train.py:14 in <module>",
            "    axis 0 of x: 3 → 4",
            "",
            "function  call site  under  compiles  operations  time",
            "─",
            "step  train.py:14 in <module>  jax HERE (here)  1  OPERATIONS  TIME",
            "                                     jax 0.1.2  1  OPERATIONS  RATIO",
            "                                     jax 7.8.9  2  OPERATIONS  RATIO",
            "",
            "time: of all its compiles here; below × against that, never judged",
        ],
    )
    said = [line for line in done.stderr.splitlines() if line.startswith("jitcount: ")]
    cache = os.environ["XDG_CACHE_HOME"]
    made = [line for line in said if cache in line]
    assert [re.sub(r"-\w{8},", ",", line.replace(cache, "~")) for line in made] == [
        "jitcount: jax 0.1.2 is in ~/jitcount/jax-0.1.2, for the next time too",
        "jitcount: jax 7.8.9 is in ~/jitcount/jax-7.8.9, for the next time too",
    ]
    counts = {path.name: len(read_ledger(path).compiles) for path in sorted(folder.glob("*.json"))}
    assert counts == {"run-jax-7.8.9.json": 2, "run-jax-0.1.2.json": 1, "run.json": 1}


@pytest.mark.thorough
@pytest.mark.usefixtures("fake_uv")
def test_a_release_without_a_difference_ends_well_and_is_said_once_where_it_is(
    folder: Path,
) -> None:
    for is_first in True, False:
        done = run(folder, "--jax", "0.1.2", "train.py")
        assert done.returncode == 0
        heading, *_ = comparison(done)
        assert heading == "jax 0.1.2 against jax HERE (here): no difference"
        assert ("for the next time too" in done.stderr) is is_first


@pytest.mark.usefixtures("fake_uv")
def test_a_program_that_fails_under_one_release_only_is_a_difference(folder: Path) -> None:
    (folder / "train.py").write_text(FAILS)
    done = run(folder, "--jax", "7.8.9", "train.py")
    assert done.returncode == 3
    lines = [line for line in comparison(done) if line]
    kept = re.sub(r"\S+/cache/", "~/", lines[2])
    assert lines[:2] == [
        "jax 7.8.9 against jax HERE (here): 1 difference",
        "  it ended with exit code 1: AttributeError: jax.core has no attribute Tracer",
    ]
    assert re.sub(r"-\w{8}/", "/", kept) == (
        "  what it printed is in ~/jitcount/jax-7.8.9/output.txt"
    )


@pytest.mark.usefixtures("fake_uv")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--jax", "0.99.0", "train.py"],
            (
                "jitcount run: error: no environment with jax 0.99.0: "
                "uv: No solution found: there is no version of jax==0.99.0"
            ),
        ),
        (
            ["--jax", "newest", "train.py"],
            (
                "jitcount run: error: argument --jax: 'newest' is not a release of JAX, "
                "such as 0.9.2"
            ),
        ),
        (
            ["--jax", "0.9.2", "--what-if=calls", "train.py"],
            "jitcount run: error: --what-if=calls is for one release: not with --jax",
        ),
        (
            ["--jax", "0.9.2", "--ledger", "train.py", "train.py"],
            (
                "jitcount run: error: {}/train.py: is not JSON, or is cut short: "
                "JSON is malformed: invalid character (byte 1); it is left as it is"
            ),
        ),
    ],
)
def test_what_cannot_be_had_is_one_line_and_nothing_runs(
    folder: Path, words: list[str], message: str
) -> None:
    done = run(folder, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == message.format(folder)


@pytest.mark.thorough
@pytest.mark.usefixtures("fake_uv")
def test_ctrl_c_ends_what_runs_elsewhere(folder: Path) -> None:
    (folder / "train.py").write_text(
        "import os, sys, time, jax\n"
        "open('began-' + str('jax-0.1.2' in sys.prefix), 'w').write(str(os.getpid()))\n"
        "if 'jax-0.1.2' in sys.prefix: time.sleep(100)\n"
    )
    words = ("-m", "jitcount", "run", "--jax", "0.1.2", "train.py")
    began = folder / "began-True"
    with running(*words, cwd=folder, env={"JAX_PLATFORMS": "cpu"}) as process:
        wait_until(lambda: began.exists() and began.read_text(), process, within=600)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert "Traceback" not in stderr
    with pytest.raises(ProcessLookupError):
        os.kill(int(began.read_text()), 0)


@pytest.mark.thorough
@pytest.mark.usefixtures("fake_uv")
def test_what_ran_with_another_jax_is_not_taken_for_the_release(folder: Path) -> None:
    (folder / "train.py").write_text("import jax")
    done = run(folder, "--jax", "0.1.2", "train.py")
    assert done.returncode == 1
    assert comparison(done) == [
        "jax 0.1.2 against jax HERE (here): 1 difference",
        "  it ran with jax HERE: something else comes first in its path (PYTHONPATH?)",
    ]


@pytest.mark.thorough
@pytest.mark.usefixtures("fake_uv")
def test_the_suite_is_compared_case_by_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = jax.__version__
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    monkeypatch.setenv("FAKE_UV", json.dumps({"releases": {here: [python]}}))
    words = ("suite", "--jax", here, "--ledger", "s.json", "first-example", "sum-10")
    env = {"COLUMNS": "200", "JAX_PLATFORMS": "cpu"}
    done = jitcount(*words, cwd=tmp_path, env=env)
    assert done.returncode == 0
    assert "2 cases held, 0 did not, 0 unsupported" in done.stdout
    assert "0 differences in 2 cases in 2 ledgers" in done.stdout
    assert {path.name for path in tmp_path.glob("*.json")} == {"s.json", f"s-jax-{here}.json"}


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not installed")
def test_uv_itself_makes_an_environment(folder: Path, tmp_path: Path) -> None:
    done = run(folder, "--jax", "0.9.2", "train.py", XDG_CACHE_HOME=str(tmp_path / "cache"))
    if "Failed to fetch" in done.stderr:
        pytest.skip("no network")
    assert comparison(done)[0].endswith(" against jax HERE (here): no difference")
