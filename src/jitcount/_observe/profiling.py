"""The way from JAX's phases to a profiler, where one is wanted: what fails there fails nothing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

    from jitcount._observe.audience import Audience

_logger = logging.getLogger("jitcount")


class Profiling:
    """Calls the audience's profiler; gives None where there is none, or where it failed."""

    def __init__(self, audience: Audience) -> None:
        self._audience = audience

    def begin_trace(self) -> None:
        """A trace begins."""
        if self._audience.profiler is not None:
            self._call("begin_trace")

    def end_trace(self) -> Any:
        """The innermost trace has ended, well or not."""
        return None if self._audience.profiler is None else self._call("end_trace")

    def end_lowering(self, traced: Any, frame: FrameType) -> Any:
        """A program was lowered."""
        return (
            None if self._audience.profiler is None else self._call("end_lowering", traced, frame)
        )

    def begin_compile(self, frame: FrameType) -> Any:
        """XLA begins."""
        return None if self._audience.profiler is None else self._call("begin_compile", frame)

    def end_compile(self, lowered: Any, begun: Any, frame: FrameType) -> Any:
        """XLA has ended, well or not."""
        return (
            None
            if self._audience.profiler is None
            else self._call("end_compile", lowered, begun, frame)
        )

    def _call(self, name: str, *arguments: Any) -> Any:
        try:
            return getattr(self._audience.profiler, name)(*arguments)
        except Exception:  # observing must never fail the user's program
            _logger.debug("could not profile: %s", name, exc_info=True)
            return None
