"""In GitHub's workflows: an annotation at each compile that failed a test, and a job summary.

Imported if ``GITHUB_ACTIONS`` is ``true``. What a test compiled beyond its count travels with its
report, from a worker of pytest-xdist too.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
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

_MOST_NAMES = 5


class _Failure(msgspec.Struct, frozen=True):
    """What a failed test compiled beyond its count."""

    what: str
    """The reason of the failure, in one line."""

    places: tuple[tuple[str, int, str], ...]
    """The lines that needed the compiles, each once: file, line, and what was compiled."""


def in_github_actions() -> bool:
    """Whether the tests run in a job of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def attach(report: pytest.TestReport, what: str, beyond: Sequence[Compile]) -> None:
    """Attach to a test's report what it compiled beyond its count."""
    lines: dict[tuple[str, int], list[Compile]] = {}
    for compiled in beyond:
        if compiled.call_site.file:
            line = compiled.call_site.file, compiled.call_site.line
            lines.setdefault(line, []).append(compiled)
    places = [(file, line, title_of(group)) for (file, line), group in lines.items()]
    sent = _Failure(what, tuple(places))
    vars(report)["jitcount_failure"] = msgspec.json.encode(sent).decode()


def title_of(compiles: Sequence[Compile], *, with_signature: bool = True) -> str:
    r"""What some compiles are of, in a few words: ``"step \xd78"``, ``"2 compiles: add, sin"``."""
    if len(compiles) == 1:
        return compiles[0].call if with_signature else compiles[0].function
    names = Counter(compiled.function for compiled in compiles)
    counted = [name if count == 1 else f"{name} ×{count}" for name, count in names.most_common()]
    if len(counted) == 1:
        return counted[0]
    if (more := len(counted) - _MOST_NAMES) > 0:
        counted = [*counted[:_MOST_NAMES], f"and {more} more"]
    return f"{len(compiles)} compiles: {', '.join(counted)}"


class Github:
    """Gathers the failures from the tests' reports, and writes them for GitHub at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._failed: dict[str, _Failure] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of a failed test; of one that is run again, the last time counts."""
        if report.when == "call":
            self._failed.pop(report.nodeid, None)
            if (sent := getattr(report, "jitcount_failure", None)) is not None:
                self._failed[report.nodeid] = msgspec.json.decode(sent, type=_Failure)

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
        """One for a test and a line, whatever the parameters of the test are."""
        cases: dict[tuple[str, str, int], list[tuple[str, str]]] = {}
        for test, failure in self._failed.items():
            for file, line, call in failure.places:
                place = test.partition("[")[0], file, line
                cases.setdefault(place, []).append((call, failure.what))
        return [
            _command(file=_in_repository(file), line=str(line), title=call, text=f"{what}{more}")
            for (_, file, line), [(call, what), *others] in cases.items()
            for more in [f"; the same line in {plural(len(others), 'more case')}" if others else ""]
        ]

    def _parts(self) -> list[Part]:
        parts: list[Part] = []
        if self._failed:
            rows = [(test, failure.what) for test, failure in self._failed.items()]
            what = f"{plural(len(rows), 'test')} did not compile as expected"
            parts += [Heading(what), Table(words("test", "compiles"), rows)]
        run = self._config.pluginmanager.get_plugin("jitcount-run")
        return [*parts, *(run.parts() if run is not None else [])]


def _in_repository(file: str) -> str:
    """A file's path as GitHub writes it: from the root of the repository."""
    root = os.environ.get("GITHUB_WORKSPACE", "")
    with contextlib.suppress(ValueError):  # it is elsewhere
        return Path(file).relative_to(root).as_posix() if root else file
    return file


def _command(*, file: str, line: str, title: str, text: str) -> str:
    r"""An annotation: a line in the output that GitHub reads.

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
