"""Mutated command lines: each is done, or refused in one clear line, with the right exit code."""

from pathlib import Path

import pytest

from jitcount._cli.arguments import parse
from tests.attack.mutations import called, chance, mutated_line, numbers
from tests.helpers import python

LINES = numbers(full=500, few=100)
RUNS = numbers(full=60, few=2, chunks=12)

SCRIPT = "import sys; print(sys.argv[1:]); sys.exit(7)"

COMMANDS = [
    ["run", "script.py", "--help"],
    ["run", "--all", "--live", "script.py", "a", "b"],
    ["run", "--max", "3", "--ledger", "out.json", "script.py"],
    ["run", "--target", "tpu:v5e", "-m", "script"],
    ["run", "-m", "script", "--max", "3"],
    ["compare", "old.json", "old.json"],
    ["compare", "old.json", "missing.json", "folder"],
    ["suite", "--ledger", "out.json", "--processes", "2", "no-such-case"],
    ["suite", "--bench", "--target", "cuda:h100:8", "no-such-case-*"],
    ["targets"],
    ["--version"],
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "old.json").write_text('{"kind": "jitcount ledger", "schema": 1}')
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("chunk", LINES, ids=str)
@pytest.mark.usefixtures("folder")
def test_a_mutated_line_is_understood_or_refused_in_a_line(
    chunk: range, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = set()
    for number in chunk:
        line = mutated_line(COMMANDS, chance("line", number))
        try:
            parse(line)
            code: object = "understood"
        except SystemExit as end:
            code = end.code
        except BaseException as error:  # noqa: BLE001 (whatever it is, it is named)
            pytest.fail(f"{called('line', number)}: {line}: {error!r}")
        said = capsys.readouterr().err
        assert code in {"understood", 0, 2}, (called("line", number), line)
        if code == 2:
            last = said.rstrip("\n").splitlines()[-1]
            assert last.startswith("jitcount"), (called("line", number), line, said)
            assert ": error: " in said, (called("line", number), line, said)
        codes.add(code)
    if len(chunk) > 1:
        assert codes == {"understood", 0, 2}


def test_a_line_that_is_as_it_was_gives_the_scripts_own_code(folder: Path) -> None:
    done = python("-m", "jitcount", *COMMANDS[1])
    assert (done.returncode, done.stdout) == (7, "['a', 'b']\n")


@pytest.mark.parametrize("chunk", RUNS, ids=str)
def test_a_mutated_line_loses_no_exit_code_and_shows_no_traceback(
    chunk: range, folder: Path
) -> None:
    for number in chunk:
        line = mutated_line(COMMANDS, chance("run", number))
        if any(word.startswith(("sum", "x/")) for word in line):  # cases, or names of megabytes
            continue
        done = python("-m", "jitcount", *line, cwd=folder, env={"COLUMNS": "100"})
        where = (called("run", number), line, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr, where
        # The script's, or ours: good, something found, bad usage.
        assert done.returncode in {0, 1, 2, 7}, where
        assert ("[" in done.stdout) <= (done.returncode in {0, 1, 7}), where
        if done.returncode == 2:
            assert done.stderr.strip(), where
        assert (folder / "script.py").read_text() == SCRIPT, where
        assert (folder / "old.json").read_text().startswith('{"kind"'), where
