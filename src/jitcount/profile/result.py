"""What a profile says of one compile; `record(profile=True)` asks for it."""

from __future__ import annotations

import msgspec

from jitcount.observe.call_site import CallSite

NOT_ATTRIBUTED = CallSite("not attributed")
"""The row of what no line can be blamed for; it is never spread over the others."""


class _Plain(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """As all that goes into a ledger."""


class Line(_Plain, frozen=True):
    """A line of the user's, and what it costs.

    The lines of a compile and the row that is `NOT_ATTRIBUTED` add up to its phases.
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


class Measured(_Plain, frozen=True):
    """A loop for one compiler, as it is and as a scan."""

    compiler: str
    """``"cpu"``, or a target's name."""

    unrolled_s: float = 0.0
    """Seconds of the processor that its compiler took for the program as it is."""

    scan_s: float = 0.0
    """The same, with this loop as a `jax.lax.scan`."""

    stacked_s: float | None = None
    """The same, with the arguments that the scan stacks stacked before the program is called."""

    error: str = ""
    """Why there is no figure."""


class AsScan(_Plain, frozen=True):
    """What came of it when a loop was rolled up into a `jax.lax.scan`, or all of a program's."""

    measured: tuple[Measured, ...] = ()
    values: str = ""
    """How its results compare: ``"the same bits"``, ``"within rounding"``."""

    loops: int = 1
    """How many were rolled up at once."""

    stacked: tuple[int, ...] = ()
    """How many arguments each array holds that was stacked beforehand."""

    reason: str = ""
    """Why it was not rolled up, or its figures are not to be used."""


class Loop(_Plain, frozen=True):
    """A loop that was unrolled: the same operations, again and again."""

    call_site: CallSite
    copies: int
    """How often they are there."""

    operations: int
    """How many they are, in one copy."""

    backward: tuple[int, int] | None = None
    """Copies and operations of its backward pass, where that was found too."""

    as_scan: AsScan | None = None
    """With ``--what-if``, what a scan would change."""


class Phase(_Plain, frozen=True):
    """A part of a compile's time."""

    name: str
    """``"trace"``, ``"lower"``, ``"XLA's passes"``, ``"code generation"``."""

    seconds: float
    inside: tuple[Phase, ...] = ()
    """The longest of its parts: passes."""


class Constant(_Plain, frozen=True):
    """An array that the program does not take as an argument, but has inside of it."""

    call_site: CallSite
    """The line that closed over it."""

    type: str
    """``"float32[1000,1000]"``."""

    bytes: int


class Profile(_Plain, frozen=True):
    """All of it."""

    lines: tuple[Line, ...] = ()
    """Most first; last, what is `NOT_ATTRIBUTED`."""

    loops: tuple[Loop, ...] = ()
    as_scans: AsScan | None = None
    """With ``--what-if``, what all of its loops together would change; None where there is one."""

    phases: tuple[Phase, ...] = ()
    constants: tuple[Constant, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be told, and why."""
