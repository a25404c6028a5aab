"""Expected texts that rewrite themselves: ``pytest --update-expected``.

A test compares what it found with a text in its own source, `expect`, or in a file beside it,
`expect_file`. Both compare exactly and whole. With the option, what was found replaces what was
expected when the run has ended; then ``git diff`` shows what changed, and ``ruff format`` lays it
out. It works with pytest-xdist: the process above the workers writes.

It is our own, and no library, because libraries for this are plugins that pytest loads everywhere:
also in the projects in which the tests run pytest, as users do, to see all that it prints.
"""

from __future__ import annotations

import ast
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

if TYPE_CHECKING:
    from types import FrameType

Found: TypeAlias = str | list[str]

# Where an expected text is: a file alone, or the line and column of a call in it.
Place: TypeAlias = tuple[str, int, int]

_SENT = "expected_texts"
_WIDTH = 80

_is_updating = False
_updates: dict[Place, Found] = {}


def expect(found: Found, expected: Found) -> None:
    """Compare a text, or lines, with what the source of the test says, as a literal."""
    __tracebackhide__ = True
    if found != expected and _is_updating and _update(_place_of(sys._getframe(1)), found):
        return
    assert found == expected


def expect_file(found: str, name: str) -> None:
    """Compare a text with a file beside the test."""
    __tracebackhide__ = True
    path = Path(sys._getframe(1).f_code.co_filename).with_name(name)
    expected = path.read_text(encoding="utf-8") if path.exists() else ""
    if found != expected and _is_updating and _update((str(path), 0, 0), found):
        return
    assert found == expected


def _place_of(frame: FrameType) -> Place:
    """Where the call is that a frame is executing."""
    line, _, column, _ = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    assert line is not None
    assert column is not None
    return frame.f_code.co_filename, line, column


def _update(place: Place, found: Found) -> bool:
    """Whether a text can be updated: a test that is run with several values cannot expect two."""
    is_file = not place[1]
    return (is_file or _is_literal(place)) and _updates.setdefault(place, found) == found


def _is_literal(place: Place) -> bool:
    name, line, column = place
    call = _call_at(ast.parse(Path(name).read_bytes()), line, column)
    return call is not None and isinstance(_value(call.args[1]), str | list)


def _value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:  # an f-string, a name: to be changed by hand
        return None


def _call_at(tree: ast.AST, line: int, column: int) -> ast.Call | None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (node.lineno, node.col_offset) == (line, column):
            return node
    return None


# --- What pytest calls ----------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-expected", action="store_true", help="rewrite expected texts that differ"
    )


def pytest_configure(config: pytest.Config) -> None:
    global _is_updating  # noqa: PLW0603 (of the process, as the option is)
    _is_updating = bool(config.getoption("--update-expected"))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what a worker of pytest-xdist has found; one that crashed sends nothing."""
    _updates.update((getattr(node, "workeroutput", None) or {}).get(_SENT, ()))


def pytest_sessionfinish(session: pytest.Session) -> None:
    sent = getattr(session.config, "workeroutput", None)
    if sent is not None:
        sent[_SENT] = list(_updates.items())
        return
    # From the end of a file to its start: what is above keeps its line.
    for (name, line, column), found in sorted(_updates.items(), reverse=True):
        if line:
            _rewrite(Path(name), line, column, found)
        else:
            Path(name).write_text(str(found), encoding="utf-8")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for name in sorted({name for name, *_ in _updates}):
        terminalreporter.write_line(f"rewrote expected texts in {name}")


# --- How a source is rewritten --------------------------------------------------------------------


def _rewrite(path: Path, line: int, column: int, found: Found) -> None:
    """Replace the literal of one call."""
    source = path.read_bytes()
    call = _call_at(ast.parse(source), line, column)
    assert call is not None, f"{path}:{line}: the source has changed meanwhile"
    node = call.args[1]
    lines = source.splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    begin = starts[node.lineno - 1] + node.col_offset
    end = starts[node.end_lineno - 1] + node.end_col_offset
    path.write_bytes(source[:begin] + literal(found).encode() + source[end:])


def literal(found: Found) -> str:
    """A text, or lines, as a source has them: a string for each line, several for a long one."""
    if isinstance(found, str):
        return "\n".join(map(_quoted, _pieces(found))) or '""'
    return "".join(["[\n", *(f"{_element(each)},\n" for each in found), "]"])


def _element(text: str) -> str:
    quoted = [_quoted(piece) for piece in _pieces(text)] or ['""']
    return quoted[0] if len(quoted) == 1 else f"({' '.join(quoted)})"


def _pieces(text: str) -> list[str]:
    return [
        piece
        for line in text.splitlines(keepends=True)
        for piece in textwrap.wrap(
            line, _WIDTH, drop_whitespace=False, replace_whitespace=False, expand_tabs=False,
            break_long_words=False, break_on_hyphens=False,
        )
    ]  # fmt: skip


def _quoted(text: str) -> str:
    shown = repr(text)
    return f'"{shown[1:-1]}"' if shown[0] == "'" and '"' not in text and "'" not in text else shown
