"""What a profile says of one compile; `record(profile=True)` asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from jitcount._loops.result import AsScan, Loop
from jitcount._observe.call_site import CallSite
from jitcount._stored import Stored

if TYPE_CHECKING:
    from collections.abc import Iterable

NOT_ATTRIBUTED = CallSite("not attributed")
"""The row of what no line can be blamed for; it is never spread over the others."""


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
    """Of a row inside a line's, what it is: a library's line, or a copy: ``"backward pass"``."""

    calls: str = ""
    """The function of JAX's that most of it comes from: ``"softmax"``."""

    trace_s: float = 0.0
    """Seconds in which JAX traced it."""

    compile_s: float = 0.0
    """Seconds of XLA, where the compiler says enough to tell."""

    share_s: float = 0.0
    """An estimate: of what is not attributed, and of lowering, as much as it has of all operations.

    Lowering, XLA's passes and the like work on the whole program, and do not say for which line.
    """

    jaxpr_operations: int = 0
    """How many equations JAX traced from it."""

    operations: int = 0
    """How many operations XLA was handed from it; the lines' sum is the compile's."""

    optimised_operations: int = 0
    """How many instructions are left of it when XLA has optimised the program."""

    inside: tuple[Line, ...] = ()
    """The same by part: the libraries' lines that it called, and copies that JAX made of it."""

    @property
    def file(self) -> str:
        """Where the file is, absolute."""
        return self.call_site.file

    @property
    def line(self) -> int:
        """The line's number."""
        return self.call_site.line

    @property
    def function(self) -> str:
        """The function that it is in."""
        return self.call_site.function

    @property
    def total_s(self) -> float:
        """Seconds that leaving it out should save: what was measured, and its share of the rest."""
        return self.trace_s + self.compile_s + self.share_s

    @property
    def is_attributed(self) -> bool:
        """Whether it is a line at all."""
        return self.call_site != NOT_ATTRIBUTED


class Phase(Stored, frozen=True):
    """A part of a compile's time."""

    name: str
    """``"trace"``, ``"lower"``, ``"XLA's passes"``, ``"code generation"``."""

    seconds: float
    inside: tuple[Phase, ...] = ()
    """The longest of its parts: passes."""


class Constant(Stored, frozen=True):
    """An array that the program does not take as an argument, but has inside of it."""

    call_site: CallSite
    """The line that closed over it."""

    type: str
    """``"float32[1000,1000]"``."""

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
    """Most first; last, what is `NOT_ATTRIBUTED`."""

    loops: tuple[Loop, ...] = ()
    as_scans: AsScan | None = None
    """With ``--what-if``, what all of its loops together would change; None where there is one."""

    phases: tuple[Phase, ...] = ()
    constants: tuple[Constant, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be told, and why."""


# --- The lines of many compiles, as one table -----------------------------------------------------


class HasLines(Protocol):
    """A compile."""

    @property
    def lines(self) -> tuple[Line, ...]:
        """Its lines."""


_SUMMED = (
    "trace_s",
    "compile_s",
    "share_s",
    "jaxpr_operations",
    "operations",
    "optimised_operations",
)


def over_all(compiles: Iterable[HasLines]) -> tuple[Line, ...]:
    """What each line took over all compiles, most first; last, what is not attributed."""
    found: dict[tuple[str, int, bool], Line] = {}
    calls: dict[tuple[str, int, bool], tuple[float, str]] = {}
    for compiled in compiles:
        for line in compiled.lines:
            key = line.file, line.line, line.is_attributed
            before = found.get(key)
            if before is None:
                found[key] = msgspec.structs.replace(line, inside=())
                calls[key] = line.total_s, line.calls
            else:
                sums = {name: getattr(before, name) + getattr(line, name) for name in _SUMMED}
                # What it calls in the costlier of them.
                calls[key] = max(calls[key], (line.total_s, line.calls))
                found[key] = msgspec.structs.replace(before, calls=calls[key][1], **sums)
    return tuple(
        sorted(found.values(), key=lambda line: (line.is_attributed, line.total_s), reverse=True)
    )
