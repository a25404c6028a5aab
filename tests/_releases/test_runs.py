"""A command under another release: what it reads, what it leaves, how it ended."""

import sys
from pathlib import Path

import pytest

from jitcount._releases import runs
from jitcount._releases.environments import ReleaseEnvironment
from jitcount._releases.runs import Ended, Runs, output_of
from tests.helpers import python


def environment(folder: Path, source: str) -> ReleaseEnvironment:
    """One whose command is this program, and whose Python is that of the tests."""
    command = folder / "command.py"
    command.write_text(source)
    return ReleaseEnvironment("0.9.2", str(folder), sys.executable, str(command), ())


FAILS = """
def inner():
    raise ValueError("no such thing\\nat all")
try:
    inner()
except ValueError as error:
    error.add_note("--------------------\\nFor simplicity, something was removed.")
    raise KeyError("x") from error
"""


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("print('well')", "ended with exit code 0"),
        (FAILS, "ended with exit code 1: KeyError: 'x'"),
        ("raise SystemExit('bad input')", "ended with exit code 1: bad input"),
        ("import os; os.kill(os.getpid(), 9)", "was ended by SIGKILL (Killed)"),
    ],
)
def test_how_it_ended_is_one_line(tmp_path: Path, source: str, said: str) -> None:
    assert str(Runs().under(environment(tmp_path, source), [])) == said


def test_what_it_printed_is_kept_and_it_is_as_if_its_environment_were_activated(
    tmp_path: Path,
) -> None:
    source = (
        "import os, sys; print(os.environ['VIRTUAL_ENV'], 'JITCOUNT' in os.environ, *sys.argv[1:])"
    )
    made = environment(tmp_path, source)
    Runs().under(made, ["a b", "--c"])
    assert output_of(made).read_text() == f"{tmp_path / 'venv'} False a b --c\n"


def test_one_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "timeout_for", lambda _: 0.5)
    ended = Runs().under(environment(tmp_path, "import time; time.sleep(600)"), [])
    assert ended.is_late
    assert str(Ended(1, 60.0, is_late=True)) == "took longer than 60 s, and was ended"


READS = """
import os
import sys
from pathlib import Path
from jitcount._releases.environments import ReleaseEnvironment
from jitcount._releases.runs import Runs, output_of

folder = Path(sys.argv[1])
os.dup2(os.open(folder / "in.txt", os.O_RDONLY), 0)
made = ReleaseEnvironment("0.9.2", str(folder), sys.executable, str(folder / "command.py"), ())
runs = Runs()
for _ in range(2):
    runs.under(made, [])
    print(output_of(made).read_text(), end="")
"""


def test_a_stdin_that_is_a_file_is_read_again_from_where_it_stood(tmp_path: Path) -> None:
    environment(tmp_path, "print(input())")
    (tmp_path / "in.txt").write_text("first\nsecond\n")
    (tmp_path / "reads.py").write_text(READS)
    printed = python(str(tmp_path / "reads.py"), str(tmp_path)).stdout
    assert printed == "first\nfirst\n"
