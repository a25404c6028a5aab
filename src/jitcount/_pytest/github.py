"""In GitHub's workflows: an annotation at each compile that failed a test, and a job summary.

Loaded where ``GITHUB_ACTIONS`` is ``true``. What a test compiled beyond its count travels with its
report, from a worker of pytest-xdist too.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from jitcount._show import markdown
from jitcount._show.parts import Heading, Part, Table, words
from jitcount._show.text import plural
from jitcount._text import escape_control_chars

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from jitcount._explain.compile import Compile

# GitHub shows no more of a step.
_MOST = 10


class _Told(msgspec.Struct, frozen=True):
    """What a failed test compiled beyond its count."""

    what: str
    """In one line."""

    places: tuple[tuple[str, int, str], ...]
    """The lines that needed it: file, line, and what."""


def in_github_actions() -> bool:
    """Whether this is a job of GitHub's."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def attach(report: pytest.TestReport, what: str, beyond: Sequence[Compile]) -> None:
    """Put it into a report."""
    places = [
        (compiled.call_site.file, compiled.call_site.line, compiled.call)
        for compiled in beyond
        if compiled.call_site.file
    ]
    sent = _Told(what, tuple(dict.fromkeys(places)))
    vars(report)["jitcount_told"] = msgspec.json.encode(sent).decode()


class Github:
    """Gathers what the tests' reports bring, and tells GitHub at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._failed: dict[str, _Told] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of a failed test; of one that is run again, the last time counts."""
        if report.when == "call":
            self._failed.pop(report.nodeid, None)
            if (sent := getattr(report, "jitcount_told", None)) is not None:
                self._failed[report.nodeid] = msgspec.json.decode(sent, type=_Told)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write the annotations, each a line that GitHub reads, and the summary."""
        for line in self._annotations()[:_MOST]:
            terminalreporter.write_line(line)
        summary = os.environ.get("GITHUB_STEP_SUMMARY")
        if summary and (parts := self._parts()):
            # A surrogate in a name, a full disk: that is no reason to fail the tests.
            with (
                contextlib.suppress(OSError),
                Path(summary).open("a", encoding="utf-8", errors="backslashreplace") as file,
            ):
                file.write(f"{markdown.render(parts)}\n\n")

    def _annotations(self) -> list[str]:
        return [
            _command(file=_in_repository(file), line=str(line), title=call, text=told.what)
            for told in self._failed.values()
            for file, line, call in told.places
        ]

    def _parts(self) -> list[Part]:
        parts: list[Part] = []
        if self._failed:
            rows = [(test, told.what) for test, told in self._failed.items()]
            what = f"{plural(len(rows), 'test')} did not compile as expected"
            parts += [Heading(what), Table(words("test", "compiles"), rows)]
        run = self._config.pluginmanager.get_plugin("jitcount-run")
        return [*parts, *(run.parts() if run is not None else [])]


def _in_repository(file: str) -> str:
    """A file as GitHub names it: from the root of the repository."""
    root = os.environ.get("GITHUB_WORKSPACE", "")
    with contextlib.suppress(ValueError):  # it is elsewhere
        return Path(file).relative_to(root).as_posix() if root else file
    return file


def _command(*, file: str, line: str, title: str, text: str) -> str:
    r"""A line that GitHub reads.

    >>> _command(file="a,b.py", line="3", title="f(x): 100%", text="a\nb")
    '::error file=a%2Cb.py,line=3,title=f(x)%3A 100%25::a\\nb'
    """
    of_it = {"file": file, "line": line, "title": title}
    shown = ",".join(f"{key}={_in_a_property(value)}" for key, value in of_it.items())
    return f"::error {shown}::{_escaped(text)}"


def _in_a_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def _escaped(text: str) -> str:
    return escape_control_chars(text).replace("%", "%25")
