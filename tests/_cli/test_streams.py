"""What the command says where stdout or stderr cannot take it: first the file, then the words."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jitcount._ledger import files
from jitcount._ledger.environment import environment
from jitcount._ledger.ledger import Ledger, read_ledger
from tests.helpers import python

SUITE = "suite --ledger out.json sum-10"


@pytest.fixture
def shell(tmp_path: Path) -> Callable[[str], tuple[str, list[str]]]:
    """Runs a line of the shell, in which ``jitcount`` is ours; what it printed, and its stderr."""
    ours = shlex.join([sys.executable, "-m", "jitcount"])
    empty = Ledger(environment=environment(), cases={})
    (tmp_path / "a.json").write_bytes(files.encode(empty))

    def run(line: str) -> tuple[str, list[str]]:
        (tmp_path / "line.sh").write_text(f'jitcount() {{ {ours} "$@"; }}\n{line}\n')
        done = python("-c", "import os; os.execvp('bash', ['bash', 'line.sh'])", cwd=tmp_path)
        return done.stdout, done.stderr.splitlines()

    return run


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize(
    ("words", "verb", "unbuffered"),
    [
        ("compare a.json a.json", "jitcount compare", ""),
        ("compare --json a.json a.json", "jitcount compare", "1"),
        ("targets", "jitcount targets", ""),
        ("--version", "jitcount", "1"),
        ("suite --help", "jitcount", ""),
    ],
)
def test_an_output_that_cannot_be_written_is_one_line_and_exit_2(
    shell: Callable[[str], tuple[str, list[str]]], words: str, verb: str, unbuffered: str
) -> None:
    printed = shell(f"export PYTHONUNBUFFERED={unbuffered}\njitcount {words} > /dev/full; echo $?")
    why = "the output cannot be written: No space left on device"
    assert printed == ("2\n", [f"{verb}: error: {why}"])


def test_a_stdout_that_is_closed_is_one_line_and_exit_2(
    shell: Callable[[str], tuple[str, list[str]]],
) -> None:
    why = "the output cannot be written: stdout is closed"
    assert shell("jitcount compare a.json a.json >&-; echo $?") == (
        "2\n",
        [f"jitcount compare: error: {why}"],
    )
    _, said = shell("jitcount --version >&-; echo $?")
    assert said[0].startswith("jitcount ")  # beside it, as argparse does


def test_a_reader_that_has_gone_is_no_error(
    shell: Callable[[str], tuple[str, list[str]]],
) -> None:
    for words in "compare a.json a.json", "targets", "suite --help":
        line = f"jitcount {words} | true; echo ${{PIPESTATUS[0]}}"
        assert shell(f"{line}; export PYTHONUNBUFFERED=1; {line}") == ("0\n0\n", [])


def test_the_ledger_of_the_suite_is_there_whatever_becomes_of_its_table(
    shell: Callable[[str], tuple[str, list[str]]], tmp_path: Path
) -> None:
    for sink, code, last in (
        ("| true", 0, ""),
        (">&-", 2, "jitcount suite: error: the output cannot be written: stdout is closed"),
    ):
        said = shell(f"jitcount {SUITE} {sink}; echo ${{PIPESTATUS[0]}}")
        assert said[0] == f"{code}\n"
        assert said[1][-1] == last or not last
        assert list(read_ledger(tmp_path / "out.json").cases) == ["sum-10"]
        (tmp_path / "out.json").unlink()


def test_a_closed_stderr_puts_nothing_on_stdout(
    shell: Callable[[str], tuple[str, list[str]]],
) -> None:
    assert shell("jitcount compare a.json nowhere.json 2>&-; echo $?") == ("2\n", [])
