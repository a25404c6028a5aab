"""``%load_ext jitcount`` in a notebook adds ``%%jitcount``, which shows what a cell compiles."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from jitcount._observe.call_site import cell_of

_NAME = "jitcount"

# Stands where the magic stood, so that lines have the numbers that the cell shows.
_FIRST_LINE = "# %%jitcount\n"


def load(shell: Any) -> None:
    """Add the magics ``%jitcount`` and ``%%jitcount`` to IPython."""

    def magic(line: str, cell: str | None = None) -> Any:
        """Show what an expression (%jitcount f(x)), or a whole cell (%%jitcount), compiles."""
        __tracebackhide__ = True  # IPython shows no such frame of what the cell raises
        if cell is None:
            return _run(shell, line)
        if line.strip():
            from IPython.core.error import UsageError  # noqa: PLC0415 (only in notebooks)

            raise UsageError(f"%%jitcount takes nothing beside the cell below; {line.strip()!r}")
        # Another magic must be what the cell begins with.
        return _run(shell, cell if cell.startswith("%%") else _FIRST_LINE + cell)

    from IPython.core import magic as magics  # noqa: PLC0415

    # A semicolon at the end of a cell hides its value, as without us; since IPython 8.10.
    silenced = getattr(magics, "output_can_be_silenced", lambda function: function)
    shell.register_magic_function(silenced(magic), "line_cell", _NAME)


def unload(shell: Any) -> None:
    """Remove the magics from IPython."""
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop(_NAME, None)


def _number(shell: Any) -> int:
    """The number of the cell that runs; IPython's own count may already be the next one's."""
    frame = inspect.currentframe()
    while frame is not None:
        if (number := cell_of(frame.f_code.co_filename)) is not None:
            return number
        frame = frame.f_back
    return int(shell.execution_count)


def _run(shell: Any, source: str) -> Any:
    """Run source as a cell, show its compiles, and return the value of its last expression.

    What the cell raises is raised.
    """
    __tracebackhide__ = True  # the same
    from IPython.display import display  # noqa: PLC0415 (only in notebooks)

    from jitcount._record.record import record  # noqa: PLC0415 (it needs JAX)

    source = shell.transform_cell(source)
    name = shell.compile.cache(source, _number(shell))  # call sites know the cell by it
    body = shell.transform_ast(shell.compile.ast_parse(source, name)).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    try:
        statements = shell.compile(ast.Module(body, []), name, "exec")
        value = shell.compile(ast.Expression(last.value), name, "eval") if last else None
    except SyntaxError:
        _refuse_to_await(source)
        raise
    with record() as log:
        try:
            exec(statements, shell.user_ns)  # noqa: S102 (the user's cell)
            return eval(value, shell.user_ns) if value else None  # noqa: S307
        finally:
            display(log)


def _refuse_to_await(source: str) -> None:
    """Refuse a cell that awaits: IPython would run it in its event loop, and a magic cannot."""
    try:
        compile(source, "", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError:
        return
    from IPython.core.error import UsageError  # noqa: PLC0415 (only in notebooks)

    instead = "open `with jitcount.record() as log:` in the cell, and end it with `log`"
    raise UsageError(f"%%jitcount cannot run a cell that awaits; {instead}")
