"""The pages for users: the README and what is in `docs/`, as blocks that run and what they print.

A block of Python runs by itself, as ``train.py``; one with tests is a file of tests for the
commands under it. Of a block of commands, those of jitcount, pytest and Python run, if their output
is shown: the block of text right below.

``python -m tests.pages`` puts what they print now under all of them, where more than figures
differs; ``python -m tests.pages --figures`` in any case. Read the diff.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import shlex
import shutil
import sys
import tempfile
import types
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jax

from jitcount._registry import registry
from jitcount._targets.names import ROUNDING
from tests.helpers import ROOT, python

if TYPE_CHECKING:
    from collections.abc import Iterator

README = ROOT / "README.md"
PAGES = (README, *sorted((ROOT / "docs").rglob("*.md")))

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TEXT = re.compile(r"\n+```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TERMINAL = {"COLUMNS": None, "NO_COLOR": "1", "CI": None, "BUILD_NUMBER": None}

# What a page leaves out: how far a command is, and what JAX's CUDA plugin logs without a driver. No
# setting silences that one, so pytest must not show what it captures.
_NOISE = re.compile(
    r"^(jitcount: \d+ of \d+ target|WARNING: All log|[IWE]\d{4} ).*\n", re.MULTILINE
)

# What else would help is said from some seconds of compiling on.
_NEXT_STEPS = re.compile(
    r"^(.* takes TIME to compile: --profile|a persistent cache ).*\n", re.MULTILINE
)
_QUIET = {"PYTEST_ADDOPTS": "--show-capture=no"}


@dataclass(frozen=True)
class Example:
    """Something that runs, and what its page says that it prints."""

    page: Path
    number: int
    language: str
    code: str
    tests: str
    """The file of tests that commands are given."""

    shown: str
    place: slice
    """Where in its page that is."""

    def __str__(self) -> str:
        return f"{self.page.stem}-{self.number}"

    @property
    def commands(self) -> list[list[str]]:
        """The commands of a block that can run here, as arguments of Python."""
        lines = [line.removeprefix("$ ") for line in self.code.splitlines()]
        words = [shlex.split(line) for line in lines if not line.startswith("python -m pip ")]
        known = {"jitcount": ["-m", "jitcount"], "pytest": ["-m", "pytest"], "python": []}
        return [known[first] + more for first, *more in words if first in known]

    @property
    def targets(self) -> list[str]:
        """The targets whose compilers it needs."""
        if "jitcount targets" in self.code:  # it says which are installed
            return ["tpu:v5e", "cuda:h100"]
        files = (ROOT / name for name in re.findall(r"examples/\w+\.py", self.code))
        inside = "".join(file.read_text() for file in files)
        options = re.findall(r"--(?:target|as-if|compile-target)[ =](\S+)", self.code)
        names = options + re.findall(r'as_if\("(.+?)"', inside)
        return [name for name in names if not name.startswith(ROUNDING)]


def examples_in(page: Path) -> list[Example]:
    """All that runs in a page, in order."""
    text = page.read_text()
    found: list[Example] = []
    tests = ""
    for number, block in enumerate(_BLOCK.finditer(text)):
        language, code = block.groups()
        below = _TEXT.match(text, block.end())
        shown, place = (below[1], slice(*below.span(1))) if below else ("", slice(0))
        example = Example(page, number, language, code, tests, shown, place)
        if language == "python" and "def test_" in code:
            tests = code
        elif language == "python" or (language == "console" and below and example.commands):
            found.append(example)
    return found


def printed_by(example: Example, directory: Path) -> str:
    """Run an example; commands in a new directory that has the examples' files."""
    if example.language == "python":
        return _printed_by_python(example.code)
    shutil.copytree(ROOT / "examples", directory / "examples")
    if example.tests:
        (directory / "test_step.py").write_text(example.tests)
    done = [python(*words, cwd=directory, env=_TERMINAL | _QUIET) for words in example.commands]
    return _NOISE.sub("", "".join(each.stdout + each.stderr for each in done))


def _printed_by_python(code: str) -> str:
    printed = io.StringIO()
    # As a file or a notebook's cell: what can be jitted is read from the source.
    linecache.cache["train.py"] = len(code), None, code.splitlines(keepends=True), "train.py"
    jax.clear_caches()
    main = types.ModuleType("__main__")
    with (
        registry.own_history(),
        contextlib.redirect_stdout(printed),
        _as_main(main),
    ):
        exec(compile(code, "train.py", "exec"), vars(main))  # noqa: S102
    return printed.getvalue()


@contextlib.contextmanager
def _as_main(module: types.ModuleType) -> Iterator[None]:
    """Let a module be the program; what it imports stays, for some of it loads only once."""
    before = sys.modules["__main__"]
    sys.modules["__main__"] = module
    try:
        yield
    finally:
        sys.modules["__main__"] = before


def without_figures(text: str) -> list[str]:
    """Lines without what differs from run to run, or by release: times, sizes, shares, widths."""
    # pytest adds hours and minutes to a run of more than a minute: "62.25s (0:01:02)".
    text = re.sub(r"\b[\d.]+ ?(s|ms|µs|ns)\b( \(\d+:\d\d:\d\d\))?", "TIME", text)
    text = re.sub(r"\b[\d.]+ of (?=TIME)", "", text)
    text = re.sub(r"\b[\d.]+ [KMG]?i?B\b", "SIZE", text)
    text = re.sub(r"\b[\d.]+ %|\b[\d.]+(e-\d+)? of its size|\b[\d.]+ times", "FIGURE", text)
    text = re.sub(r"\(\d+ × cpu\)", "(cpu)", text)  # the tests have two devices
    text = _NEXT_STEPS.sub("", text)
    text = re.sub(r"([─=_-])\1+", r"\1", text)
    return [re.sub(r" +", " ", line).strip() for line in text.strip().splitlines()]


def update(page: Path, *, figures: bool) -> None:
    """Put under each example of a page what it prints now, where that differs."""
    for example in reversed(examples_in(page)):
        with tempfile.TemporaryDirectory() as directory:
            printed = printed_by(example, Path(directory))
        if not example.shown and not printed:
            continue
        if figures or without_figures(printed) != without_figures(example.shown):
            text, place = page.read_text(), example.place
            page.write_text(f"{text[: place.start]}{printed.strip()}\n{text[place.stop :]}")
            print(f"{page.relative_to(ROOT)}: example {example.number}")  # noqa: T201


if __name__ == "__main__":
    _words = sys.argv[1:]
    for _page in [Path(word).resolve() for word in _words if word != "--figures"] or PAGES:
        update(_page, figures="--figures" in _words)
