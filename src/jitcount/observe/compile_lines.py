"""Hears the line "Compiling step with global shapes and types ..." of JAX's own compile logging.

`jax_log_compiles` raises such lines from DEBUG to WARNING. We leave that setting alone, since a
user may want the lines on the terminal, or not: the logger is opened down to DEBUG, the line's
arguments are read, and a line goes on to the terminal just when it would have gone without us.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jitcount import _jax

if TYPE_CHECKING:
    from collections.abc import Callable

_logger = logging.getLogger(_jax.COMPILE_LOGGER)


class _Filter(logging.Filter):
    """Reads each line, and holds back those that only we have asked for."""

    def __init__(self, on_line: Callable[[Sequence[Any]], None]) -> None:
        super().__init__()
        self.on_line = on_line
        self.level_before = _logger.level

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            avals = _avals_in(record)
            if avals is not None:
                self.on_line(avals)
        except Exception:  # observing must never fail the program that is observed
            logging.getLogger("jitcount").debug("could not read %r", record.msg, exc_info=True)
        return record.levelno >= self._level_without_us()

    def _level_without_us(self) -> int:
        if self.level_before != logging.NOTSET:
            return self.level_before
        return _logger.parent.getEffectiveLevel() if _logger.parent else logging.WARNING


_filter: _Filter | None = None


def listen(on_line: Callable[[Sequence[Any]], None]) -> None:
    """Call `on_line` with the avals of each program that is lowered, in its thread."""
    global _filter  # noqa: PLW0603 (one ear for the process)
    if _filter is not None:
        return
    _filter = _Filter(on_line)
    _logger.addFilter(_filter)
    _logger.setLevel(logging.DEBUG)


def is_listening() -> bool:
    """Whether the lines are heard."""
    return _filter is not None


def forget() -> None:
    """Leave the logger as it was found; a level that someone set in between stays."""
    global _filter  # noqa: PLW0603
    if _filter is None:
        return
    if _logger.level == logging.DEBUG:
        _logger.setLevel(_filter.level_before)
    _logger.removeFilter(_filter)
    _filter = None


def _avals_in(record: logging.LogRecord) -> Sequence[Any] | None:
    """The avals among the arguments of a "Compiling ..." line; None for any other line."""
    if not str(record.msg).startswith("Compiling ") or not isinstance(record.args, tuple):
        return None
    lists = (argument for argument in record.args if isinstance(argument, Sequence))
    return next((a for a in lists if not isinstance(a, str)), None)
