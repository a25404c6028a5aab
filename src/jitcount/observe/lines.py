"""Hears lines of JAX's own logging, and lets none through that was not meant for the terminal.

Settings like `jax_log_compiles` raise such lines from DEBUG to WARNING. We leave the settings
alone, since a user may want the lines on the terminal, or not: the logger is opened down to DEBUG,
the line's arguments are read, and it goes on just when it would have gone without us.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Lines(logging.Filter):
    """The lines of one logger, told to `on_line` in the thread that logs, while they are heard."""

    def __init__(self, logger: str, on_line: Callable[[logging.LogRecord], None]) -> None:
        super().__init__()
        self._logger = logging.getLogger(logger)
        self._on_line = on_line
        self._level_before = logging.NOTSET
        self.are_heard = False

    def hear(self, *, wanted: bool) -> None:
        """Hear the lines, or no longer: then the logger is left as it was found."""
        if wanted and not self.are_heard:
            self._level_before = self._logger.level
            self._logger.addFilter(self)
            self._logger.setLevel(logging.DEBUG)
        elif self.are_heard and not wanted:
            if self._logger.level == logging.DEBUG:  # one that was set in between stays
                self._logger.setLevel(self._level_before)
            self._logger.removeFilter(self)
        self.are_heard = wanted

    def filter(self, record: logging.LogRecord) -> bool:
        """Read a line; whether it goes on is as if we were not there."""
        self._on_line(record)
        return record.levelno >= self._level_without_us()

    def _level_without_us(self) -> int:
        if self._level_before != logging.NOTSET:
            return self._level_before
        parent = self._logger.parent
        return parent.getEffectiveLevel() if parent else logging.WARNING
