"""``jitcount compare`` as it is read: differences first, then ledgers by cases."""

import contextlib
import json
import os
import re
from pathlib import Path

import msgspec
import pytest

from jitcount._cli.main import main
from jitcount._ledger.ledger import Ledger, read_ledger, write_ledger
from tests.expected import expect, expect_file
from tests.helpers import jitcount, python, running


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the ledgers of two runs, the second with a count too many and a case less."""
    folder = tmp_path_factory.mktemp("ledgers")
    main(["suite", "--ledger", str(folder / "good.json"), "first-example", "max", "exp"])
    good = read_ledger(folder / "good.json")
    where = msgspec.structs.replace(
        good.environment, device_kind="cpu", device_count=1, jax="1", jaxlib="1", python="3",
        plugins={}, system="Linux", platform="cpu",
    )  # fmt: skip
    good = msgspec.structs.replace(good, environment=where)
    write_ledger(folder / "good.json", good)
    first = good.cases["first-example"]
    more = msgspec.structs.replace(first, compiles=(*first.compiles, first.compiles[0]))
    cases = {"first-example": more, "exp": good.cases["exp"]}
    bad = Ledger(environment=good.environment, cases=cases)
    write_ledger(folder / "bad.json", bad)
    return folder


def shown(text: str) -> str:
    """The text with the ratios taken out, and with them what depends on their width."""
    text = re.sub(r"\d+\.\d+×", "RATIO", text)
    return re.sub(r"─+", "─", re.sub(r" {2,}", "  ", text))


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def test_ledgers_that_agree(ledgers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (ledgers / "again.json").write_bytes((ledgers / "good.json").read_bytes())
    assert main(["compare", str(ledgers / "good.json"), str(ledgers / "again.json")]) == 0
    expect_file(shown(capsys.readouterr().out), "agree.txt")


def test_differences_come_first_and_the_exit_code_is_1(
    ledgers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(ledgers / "good.json"), str(ledgers / "bad.json")]) == 1
    lines = shown(capsys.readouterr().out).splitlines()
    expect(
        lines[:3],
        [
            "2 differences in 3 cases in 2 ledgers",
            "  first-example in bad: compiled sum 3, add 1, not sum 2, add 1",
            "  max in bad: is missing",
        ],
    )
    expect(
        lines[-6:-3],
        [
            "exp  0.13  = RATIO  = RATIO",
            "first-example  exact  = RATIO  ✗",
            "… and 1 case in one ledger only",
        ],
    )


def test_a_ledger_with_a_part_of_the_cases_is_one_line(
    ledgers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = read_ledger(ledgers / "good.json")
    part = msgspec.structs.replace(good, cases={"exp": good.cases["exp"]})
    write_ledger(ledgers / "part.json", part)
    assert main(["compare", str(ledgers / "good.json"), str(ledgers / "part.json")]) == 1
    lines = shown(capsys.readouterr().out).splitlines()
    expect(
        lines[:3],
        [
            "1 difference in 3 cases in 2 ledgers",
            "  part: 2 of 3 cases are missing: first-example, max",
            "",
        ],
    )
    expect(
        lines[-6:-2],
        [
            "─",
            "exp  0.13  = RATIO  = RATIO",
            "… and 2 cases in one ledger only",
            "",
        ],
    )


def test_plain_data_for_other_programs(ledgers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(ledgers / name) for name in ("good.json", "bad.json")]
    assert main(["compare", "--json", *files]) == 1
    printed = capsys.readouterr().out
    assert printed.isascii()
    found = json.loads(printed)
    assert found["differences"] == [
        {
            "case": "first-example",
            "ledger": "bad",
            "text": "compiled sum 3, add 1, not sum 2, add 1",
        },
        {"case": "max", "ledger": "bad", "text": "is missing"},
    ]
    assert list(found["ledgers"]) == ["good", "bad"]
    where = "cpu (cpu): jax 1, jaxlib 1, Python 3, Linux"
    assert found["ledgers"]["bad"]["where"] == where
    assert found["ledgers"]["bad"]["same_bits"] == 1
    assert found["cases"]["max"]["bound_used"] is None
    assert found["cases"]["max"]["in"]["bad"] == {"state": "missing", "ulps": 0}
    assert found["cases"]["exp"]["in"]["good"]["state"] == "same"
    assert main(["compare", "--json", files[0], files[0]]) == 0


def test_markdown_for_a_job_summary(ledgers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(ledgers / name) for name in ("good.json", "bad.json")]
    assert main(["compare", "--markdown", *files]) == 1
    expect_file(shown(capsys.readouterr().out), "differ.md")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["good.json"], "jitcount compare: error: compare needs two ledgers or more"),
        (
            ["--json", "--markdown", "good.json", "bad.json"],
            "jitcount compare: error: argument --markdown: not allowed with argument --json",
        ),
        (["good.json", "none.json"], "none.json: cannot be read: No such file or directory"),
        (["good.json", "foreign.json"], "foreign.json: is not a jitcount ledger"),
        (["good.json", "pipe"], "pipe: is a pipe or a device, not a file"),
        (["/dev/null", "good.json"], "/dev/null: is a pipe or a device, not a file"),
        (["good.json", "."], ".: is a folder"),
        (["large", "good.json"], "large: is too large to be a jitcount ledger: 10.0 GiB"),
    ],
)
def test_what_cannot_be_compared_is_one_clear_line_and_exit_2(
    ledgers: Path,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(ledgers)
    (ledgers / "foreign.json").write_text('{"name": "web"}')
    with contextlib.suppress(FileExistsError):
        os.mkfifo(ledgers / "pipe")
    with (ledgers / "large").open("wb") as large:
        large.truncate(10 * 2**30)  # takes no room on the disk
    try:
        code = main(["compare", *arguments])
    except SystemExit as end:
        code = int(end.code or 0)
    printed = capsys.readouterr()
    assert (code, printed.out) == (2, "")
    assert printed.err.splitlines()[-1] == message


def test_a_reader_that_has_seen_enough_is_no_error(ledgers: Path) -> None:
    arguments = ("-m", "jitcount", "compare", "good.json", "bad.json")
    with running(*arguments, cwd=ledgers, env={"PYTHONUNBUFFERED": None}) as process:
        assert process.stdout is not None
        process.stdout.close()  # as head does, before anything is written
        _, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (1, "")


# Prints at the end how it ended, and whether JAX was imported.
WITHOUT_JAX = """
import sys
from jitcount._cli.main import main
print(main(["compare", *sys.argv[1:]]), "jax" in sys.modules)
"""


def test_comparing_imports_no_jax(ledgers: Path) -> None:
    done = python("-c", WITHOUT_JAX, "good.json", "bad.json", cwd=ledgers)
    assert (done.stdout.splitlines()[-1], done.stderr) == ("1 False", "")


HOSTILE = "\x1b[2J\x07\r\n0 differences in 0 cases\u202e\u2028[red]"


def test_a_hostile_ledger_forges_no_line_and_moves_no_cursor(ledgers: Path, tmp_path: Path) -> None:
    content = json.loads((ledgers / "bad.json").read_text())
    environment = {
        key: value + HOSTILE if isinstance(value, str) else value
        for key, value in content["environment"].items()
    }
    cases = {f"{name}{HOSTILE}": case for name, case in content["cases"].items()}
    for case in cases.values():
        for compiled in case["compiles"]:
            compiled["function"] += HOSTILE
            compiled["signature"] = [f"{one}{HOSTILE}" for one in compiled["signature"]]
            compiled["call_site"]["text"] += HOSTILE
    hostile = tmp_path / "evil\x1b[31m\n.json"
    hostile.write_text(json.dumps({**content, "environment": environment, "cases": cases}))
    finished = jitcount("compare", str(ledgers / "good.json"), str(hostile))
    assert finished.returncode == 1, finished.stderr
    assert r"\x1b[2J\x07\r\n0 differences in 0 cases\u202e\u2028[red]" in finished.stdout
    assert all(line.isprintable() for line in finished.stdout.split("\n"))
    assert not any(line.startswith("0 differences") for line in finished.stdout.split("\n"))
    hostile.write_text('{"\x1b[2J\\n": "\x1b"}')
    finished = jitcount("compare", str(ledgers / "good.json"), str(hostile))
    assert (finished.returncode, finished.stderr.count("\n")) == (2, 1)
    assert finished.stderr.rstrip("\n").isprintable()


@pytest.mark.parametrize("columns", ["10", "400"])
def test_a_stream_without_our_signs_gets_ascii(ledgers: Path, columns: str) -> None:
    env = {"PYTHONIOENCODING": "ascii:strict", "PYTHONUTF8": "0", "COLUMNS": columns}
    files = [str(ledgers / name) for name in ("good.json", "bad.json")]
    finished = jitcount("compare", *files, env=env)
    assert (finished.returncode, finished.stderr) == (1, "")
    assert finished.stdout.isascii()
    assert "\\" not in finished.stdout
