"""``record(on_compile=f)``: a function of the user's that is given each compile as it is made."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount.explain.compile import Compile
    from jitcount.observe.observation import Observation
    from jitcount.recorder.log import CompileLog

_logger = logging.getLogger("jitcount")


class _Thread(threading.local):
    is_telling: bool = False


class Telling:
    """A listener that fills a log, and tells of each compile, in the thread that compiles."""

    def __init__(self, log: CompileLog, on_compile: Callable[[Compile], object]) -> None:
        self._log = log
        self._on_compile = on_compile
        self._thread = _Thread()
        self._has_failed = False

    def __call__(self, observation: Observation) -> None:
        """Take one more; what the user's function compiles itself is in the log, and not told."""
        self._log.add(observation)
        if self._thread.is_telling:
            return
        self._thread.is_telling = True
        try:
            self._on_compile(self._log.written(observation))
        except KeyboardInterrupt:  # Ctrl-C is for the program
            raise
        except BaseException:  # whatever it is: it is not the program's
            if not self._has_failed:
                self._has_failed = True
                _logger.warning("on_compile raised; this is said once", exc_info=True)
        finally:
            self._thread.is_telling = False
