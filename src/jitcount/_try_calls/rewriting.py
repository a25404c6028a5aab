"""Puts something else in place of a call while a program is loaded: its syntax tree is changed.

``model.init(key, x)`` becomes ``__jitcount_try__(0, model.init)(key, x)``: what is called is
evaluated when it always was, and so are the arguments. No line moves.
"""

from __future__ import annotations

import ast
import builtins
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType

    from jitcount._try_calls.jitted_call import JittedCall

# Found as `print` is, and called like nothing else. A class mangles no name that ends like this.
_NAME = "__jitcount_try__"


class Rewriter:
    """Compiles the sources of a program, with something else in place of some calls."""

    def __init__(self, calls: Sequence[JittedCall]) -> None:
        self._by_file: dict[str, list[tuple[int, JittedCall]]] = {}
        for number, call in enumerate(calls):
            self._by_file.setdefault(_identity(call.file), []).append((number, call))

    def install(self, instead: Callable[[int, Any], Any]) -> None:
        """From now on, a module is loaded with ``instead(number, function)`` in place of a call."""
        setattr(builtins, _NAME, instead)
        sys.meta_path.insert(0, _Finder(self))

    def has(self, file: str) -> bool:
        """Whether one of the calls is in that file."""
        return _identity(file) in self._by_file

    def compiled(self, source: bytes | str, file: str) -> CodeType:
        """The code of a file, with its calls replaced."""
        tree = ast.parse(source, file)
        for number, call in self._by_file.get(_identity(file), ()):
            for node in nodes_of(tree, call):
                node.func = _replaced(number, node.func)
        return compile(tree, file, "exec", dont_inherit=True)


def nodes_of(tree: ast.AST, call: JittedCall) -> list[ast.Call]:
    """The nodes that are a call: more than one where a line has the same call twice."""
    same = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and node.lineno <= call.line <= (node.end_lineno or 0)
        and call.is_text(ast.unparse(node.func))
    ]
    # A call that spans lines is at the line where what is called ends.
    by_end = [node for node in same if node.func.end_lineno == call.line]
    return by_end or [node for node in same if node.lineno == call.line] or same


def _replaced(number: int, function: ast.expr) -> ast.Call:
    name = ast.Name(_NAME, ast.Load())
    replaced = ast.Call(name, [ast.Constant(number), function], [])
    for node in (replaced, name, replaced.args[0]):
        ast.copy_location(node, function)
    return replaced


def _identity(file: str) -> str:
    return os.path.normcase(os.path.realpath(file))


class _Finder:
    """Finds modules as the other finders do; those with a call get a loader of ours."""

    def __init__(self, rewriter: Rewriter) -> None:
        self._rewriter = rewriter
        self._thread = threading.local()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Find a module whose file has a call that is replaced; others are left to the others."""
        if getattr(self._thread, "is_asking", False):  # another finder that asks all the others
            return None
        self._thread.is_asking = True
        try:
            spec = next(filter(None, self._specs(name, path, target)), None)
        finally:
            self._thread.is_asking = False
        if spec is None or not (spec.origin and spec.has_location):
            return None
        if not self._rewriter.has(spec.origin) or not hasattr(spec.loader, "get_source"):
            return None
        loader: Any = _Loader(spec.loader, self._rewriter, spec.origin)
        spec.loader = loader
        return spec

    def _specs(self, name: str, path: Any, target: Any) -> Iterator[ModuleSpec | None]:
        for finder in tuple(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is not self and find is not None:
                yield find(name, path, target)


class _Loader:
    """A module's own loader, with other code; nothing is cached."""

    def __init__(self, loader: Any, rewriter: Rewriter, file: str) -> None:
        self._loader = loader
        self._rewriter = rewriter
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> Any:
        """Create the module as its own loader does."""
        create = getattr(self._loader, "create_module", None)
        return None if create is None else create(spec)

    def get_code(self, name: str) -> CodeType:
        """The module's code, also for ``-m``."""
        source: str | None = self._loader.get_source(name)
        if source is None:  # there is only bytecode
            code: CodeType = self._loader.get_code(name)
            return code
        return self._rewriter.compiled(source, self._file)

    def exec_module(self, module: Any) -> None:
        """Run the module's code."""
        exec(self.get_code(module.__spec__.name), vars(module))  # noqa: S102
