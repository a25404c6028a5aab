"""Reads lines of JAX's own logging, and lets none through that was not meant for the terminal.

Settings like `jax_log_compiles` raise such lines from DEBUG to WARNING. We leave the settings
alone, and the logger's level, filters and handlers, too, since all of them are the user's, who may
change them while we listen. Two methods of the logger are replaced instead: the one that is asked
whether a line is wanted, and the one that handles it. A line goes on just when it would have gone
without us.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class LogLines:
    """Calls `on_line` with each line of one logger, in the thread that logs, while that is wanted.

    Args:
        logger: its name.
        before: called before JAX asks whether a line is wanted.
        on_line: called with each line; without it, no line is made for us.
        is_needed: asked before each line; where it says no, that line is not made for us either.
    """

    def __init__(
        self,
        logger: str,
        before: Callable[[], None],
        on_line: Callable[[logging.LogRecord], None] | None = None,
        is_needed: Callable[[], bool] = lambda: True,
    ) -> None:
        self._logger = logging.getLogger(logger)
        self._before = before
        self._on_line = on_line
        self._is_needed = is_needed
        self._ours: dict[str, Any] = {"isEnabledFor": self._is_enabled_for, "handle": self._handle}
        self._found: dict[str, Any] = {}
        """What another one has put in their place before us."""

        self._is_enabled_without_us: Callable[[int], bool] = self._logger.isEnabledFor
        self._handle_without_us: Callable[[logging.LogRecord], None] = self._logger.handle
        self.are_read = False

    def subscribe(self, *, wanted: bool) -> None:
        """Read the lines from now on, or stop: then the logger is left as it was found."""
        if wanted is self.are_read:
            return
        self.are_read = wanted
        held = vars(self._logger)
        if wanted:
            self._found = {name: held[name] for name in self._ours if name in held}
            self._is_enabled_without_us = self._logger.isEnabledFor
            self._handle_without_us = self._logger.handle
            held.update(self._ours)
            return
        for name, ours in self._ours.items():
            if held.get(name) is ours:  # else another one came after us, and asks us in turn
                del held[name]
                held.update({name: self._found[name]} if name in self._found else {})

    def _is_enabled_for(self, level: int) -> bool:
        if self.are_read:
            self._before()
            if self._on_line is not None and self._is_needed():
                return True
        return self._is_enabled_without_us(level)

    def _handle(self, record: logging.LogRecord) -> None:
        if self.are_read and self._on_line is not None:
            self._on_line(record)
            if not self._is_enabled_without_us(record.levelno):
                return
        self._handle_without_us(record)
