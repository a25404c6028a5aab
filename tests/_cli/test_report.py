import json
from pathlib import Path

import pytest

from jitcount._cli.report import RunReport
from jitcount._cli.run import Options
from jitcount._record.log import CompileLog
from jitcount._show.stderr import StderrWriter


def report(ledger: Path | None, trace: Path | None, most: int | None = None) -> RunReport:
    options = Options(
        program=["train.py"], targets=[], ledger=ledger, profile_trace=trace, profile=True, max=most
    )
    return RunReport(options, StderrWriter(), started_at=0.0)


def test_a_file_that_cannot_be_written_does_not_cost_the_other(tmp_path: Path) -> None:
    folder, file = tmp_path / "folder", tmp_path / "file.json"
    folder.mkdir()
    for ledger, trace, kind in (
        (folder, file, "jitcount trace"),
        (file, folder, "jitcount ledger"),
    ):
        assert report(ledger, trace).finish() == 2
        assert json.loads(file.read_text())["kind"] == kind
        file.unlink()


def test_each_file_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(StderrWriter, "write", lambda _, text: said.append(text))
    assert report(tmp_path, tmp_path).finish() == 2
    assert said[-2:] == [f"jitcount: {tmp_path}: cannot be written: it is a folder"] * 2


def test_what_was_not_kept_is_told_where_tables_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> str:
        raise OSError("too many open files")

    said: list[str] = []
    monkeypatch.setattr(StderrWriter, "rendered", fail)
    monkeypatch.setattr(StderrWriter, "write", lambda _, text: said.append(text))
    assert report(tmp_path, tmp_path / "trace.json").finish() == 2
    assert said == [
        f"jitcount: {tmp_path}: cannot be written: it is a folder",
        "jitcount: could not tell: OSError: too many open files",
    ]


def test_one_compile_too_many_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(StderrWriter, "write", lambda _, text: said.append(text))
    monkeypatch.setattr(CompileLog, "count", lambda _: 1)
    assert report(None, None, most=0).finish() == 1
    assert said[-1] == "jitcount: 1 compile, and --max allows 0"
