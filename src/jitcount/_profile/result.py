"""Profiles: where the time of a compile went. `record(profile=True)` asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from jitcount._loops.result import AsScan, Loop
from jitcount._observe.call_site import CallSite
from jitcount._stored import Stored

if TYPE_CHECKING:
    from collections.abc import Iterable

NOT_ATTRIBUTED = CallSite("not attributed")
"""The row of the time that no line can be blamed for; it is never spread over the others."""


class Line(Stored, frozen=True):
    """A line of the user's, and what it costs.

    The lines of a compile and the row that is `NOT_ATTRIBUTED` add up to its phases.

    >>> import jax, jitcount, numpy as np
    >>> with jitcount.record(profile=True) as log:
    ...     _ = jax.jit(lambda x: 2 * x + 1)(np.zeros(3, np.float32))
    >>> line = log.compiles[0].lines[0]
    >>> line.jaxpr_operations, line.line == log.compiles[0].call_site.line
    (2, True)
    """

    call_site: CallSite
    """The innermost line of the user's: ``"model.py:31 in attention"``."""

    part: str = ""
    """In a row inside of a line's: a library's line, or a transformation: ``"backward pass"``."""

    calls: str = ""
    """The function that most of its operations come from: ``"softmax"``."""

    trace_s: float = 0.0
    """Seconds that JAX took to trace it."""

    compile_s: float = 0.0
    """Seconds that XLA took for it, if the compiler says enough to tell."""

    share_s: float = 0.0
    """An estimate: its share, by operations, of lowering and of what is not attributed.

    Lowering, XLA's passes and the like work on the whole program, and do not say for which line.
    """

    jaxpr_operations: int = 0
    """How many equations JAX traced from it."""

    operations: int = 0
    """How many operations XLA was handed from it; the lines' sum is the compile's."""

    optimised_operations: int = 0
    """How many instructions from it are left when XLA has optimised the program."""

    inside: tuple[Line, ...] = ()
    """The same by part: libraries' lines that it called, and what transformations made of it."""

    @property
    def file(self) -> str:
        """The absolute path of its file."""
        return self.call_site.file

    @property
    def line(self) -> int:
        """The line's number."""
        return self.call_site.line

    @property
    def function(self) -> str:
        """The function that the line is in."""
        return self.call_site.function

    @property
    def total_s(self) -> float:
        """Seconds that removing it should save: what was measured, and its share of the rest."""
        return self.trace_s + self.compile_s + self.share_s

    @property
    def is_attributed(self) -> bool:
        """Whether it is a line, and not the row of what is not attributed."""
        return self.call_site != NOT_ATTRIBUTED


class Phase(Stored, frozen=True):
    """A part of a compile's time."""

    name: str
    """``"trace"``, ``"lower"``, ``"XLA's passes"``, ``"code generation"``."""

    seconds: float
    inside: tuple[Phase, ...] = ()
    """The longest of its passes."""


class Constant(Stored, frozen=True):
    """A large array that the program does not take as an argument, but has inside of it."""

    call_site: CallSite
    """The line that uses it first."""

    type: str
    """Its dtype and shape: ``"float32[1000,1000]"``."""

    bytes: int


class Profile(Stored, frozen=True):
    """Where the time of a compile went: by line, by phase, and which loops were unrolled.

    >>> import jax, jitcount, numpy as np
    >>> with jitcount.record(profile=True) as log:
    ...     _ = jax.jit(lambda x: 2 * x + 1)(np.zeros(3, np.float32))
    >>> [phase.name for phase in log.compiles[0].profile.phases][:2]
    ['trace', 'lower']
    """

    lines: tuple[Line, ...] = ()
    """The most expensive line first; last, what is `NOT_ATTRIBUTED`."""

    loops: tuple[Loop, ...] = ()
    as_scans: AsScan | None = None
    """With ``--what-if``, what all of its loops would cost as scans; None if there is only one."""

    phases: tuple[Phase, ...] = ()
    constants: tuple[Constant, ...] = ()
    notes: tuple[str, ...] = ()
    """What is not known, and why."""


_SUMMED = (
    "trace_s", "compile_s", "share_s", "jaxpr_operations", "operations", "optimised_operations",
)  # fmt: skip


def over_all(lines: Iterable[Line]) -> tuple[Line, ...]:
    """The sums of each line over all compiles, most first; last, what is not attributed."""
    found: dict[tuple[str, int, bool], Line] = {}
    calls: dict[tuple[str, int, bool], tuple[float, str]] = {}
    for line in lines:
        key = line.file, line.line, line.is_attributed
        before = found.get(key)
        if before is None:
            found[key] = msgspec.structs.replace(line, inside=())
            calls[key] = line.total_s, line.calls
        else:
            sums = {name: getattr(before, name) + getattr(line, name) for name in _SUMMED}
            # The function that it calls in the more expensive of them.
            calls[key] = max(calls[key], (line.total_s, line.calls))
            found[key] = msgspec.structs.replace(before, calls=calls[key][1], **sums)
    return tuple(
        sorted(found.values(), key=lambda line: (line.is_attributed, line.total_s), reverse=True)
    )
