"""A call in a program's source is replaced, and nothing else of the program changes."""

from __future__ import annotations

import ast
import builtins
import importlib
import sys
import traceback
from typing import TYPE_CHECKING, Any

import pytest

from jitcount._try_calls.jitted_call import JittedCall
from jitcount._try_calls.rewriting import Rewriter, nodes_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE = "/home/me/train.py"

LINES = """\
a = f(f(1) + g(2))
b = (model
     .init(3))
c = f(
    4, f(5))
d = build("x").init(6)
"""


def places(line: int, calls: str) -> list[tuple[int, int]]:
    found = nodes_of(ast.parse(LINES), JittedCall(FILE, line, calls))
    return sorted((node.lineno, node.col_offset) for node in found)


@pytest.mark.parametrize(
    ("line", "calls", "found"),
    [
        (1, "f", [(1, 4), (1, 6)]),  # twice in a line: both
        (1, "g", [(1, 13)]),
        (2, "model.init", [(2, 5)]),
        (3, "model.init", [(2, 5)]),  # where Python says that it is
        (4, "f", [(4, 4)]),
        (5, "f", [(5, 7)]),
        (6, "build('x').init", [(6, 4)]),
        (6, "build('x').i…", [(6, 4)]),
        (6, "build", [(6, 4)]),
        (6, "f", []),
        (7, "f", []),
    ],
)
def test_a_call_is_found_by_its_line_and_its_text(
    line: int, calls: str, found: list[tuple[int, int]]
) -> None:
    assert places(line, calls) == found


@pytest.fixture
def replaced(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What was called in place of calls, while modules are rewritten."""
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    seen: list[Any] = []
    yield seen
    vars(builtins).pop("__jitcount_try__", None)


def install(rewriter: Rewriter, seen: list[Any]) -> None:
    def instead(number: int, function: Any) -> Any:
        seen.append((number, function.__name__))
        return function

    rewriter.install(instead)


ORDER = """
log = []
def say(x, y=None):
    log.append(x)
    return say if x == "function" else x
class Model:
    def init(self, x):
        return super().__repr__()[:0] + x
    def __call(self, x):
        return self.init(x)
    def run(self, x):
        return self.__call(x)
say("function")(say("one"), y=say("two"))
ran = Model().run("three")
"""


def test_what_is_called_and_its_arguments_are_evaluated_when_they_were(
    replaced: list[Any],
) -> None:
    calls = [JittedCall(FILE, 13, "say('function')"), JittedCall(FILE, 12, "self.__call")]
    rewriter = Rewriter(calls)
    install(rewriter, replaced)
    plain: dict[str, Any] = {}
    changed: dict[str, Any] = {}
    exec(compile(ORDER, FILE, "exec"), plain)  # noqa: S102
    exec(rewriter.compiled(ORDER, FILE), changed)  # noqa: S102
    assert changed["log"] == plain["log"] == ["function", "one", "two", "one"]
    assert changed["ran"] == plain["ran"] == "three"
    assert replaced == [(0, "say"), (1, "__call")]


FAILS = """
def f(x):
    return 1 / x

def main():
    return (
        f(
            0
        )
    )
main()
"""


def test_a_traceback_has_the_same_lines_and_marks(replaced: list[Any]) -> None:
    rewriter = Rewriter([JittedCall(FILE, 7, "f")])
    install(rewriter, replaced)
    shown = []
    for code in compile(FAILS, FILE, "exec"), rewriter.compiled(FAILS, FILE):
        try:
            exec(code, {})  # noqa: S102
        except ZeroDivisionError as error:
            shown.append("".join(traceback.format_exception(error)))
    assert shown[0] == shown[1]
    assert replaced == [(0, "f")]


def test_a_module_is_loaded_with_its_call_replaced(
    replaced: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "my_model"
    package.mkdir()
    (package / "__init__.py").write_text("from my_model.layers import made\n")
    (package / "layers.py").write_text("def f(x):\n    return x\nmade = f(5)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    install(Rewriter([JittedCall(str(package / "layers.py"), 3, "f")]), replaced)
    try:
        module = importlib.import_module("my_model.layers")
    finally:
        for name in "my_model", "my_model.layers":
            sys.modules.pop(name, None)
    assert (module.made, module.__file__) == (5, str(package / "layers.py"))
    assert replaced == [(0, "f")]
    assert list(package.rglob("layers*.pyc")) == []  # the changed code is kept nowhere


def test_other_modules_are_left_to_their_own_loaders(replaced: list[Any]) -> None:
    install(Rewriter([JittedCall(FILE, 3, "f")]), replaced)
    finder: Any = sys.meta_path[0]
    assert finder.find_spec("colorsys") is None
