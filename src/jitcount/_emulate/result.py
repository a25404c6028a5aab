"""What became of each program that was compiled as if for a target."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jitcount._emulate.facts import facts_of
from jitcount._emulate.other_rounding.program import OtherRounding
from jitcount._emulate.product_source import product_in
from jitcount._emulate.translate import NEAR
from jitcount._text import encode_safely, escape_control_chars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jitcount._emulate.emulator import Emulator
    from jitcount._emulate.error import ErrorBound, ErrorByLine
    from jitcount._emulate.facts import Fact
    from jitcount._emulate.translate import Site
    from jitcount._observe.call_site import CallSite


@dataclass(frozen=True, slots=True)
class RoundingAt:
    """A line of the user's at which the target rounds what it multiplies."""

    place: CallSite
    """``"model.py:8 in attention"``; with ``.file``, ``.line``, ``.function``."""

    what: str
    """The product as its line calls it: ``"@"``, ``"einsum"``, ``"Dense"``."""

    to: str
    """``"bfloat16"``, ``"bfloat16, three passes"``, ``"TF32"``."""

    count: int
    """How many products of the target's program come from there."""

    @property
    def code(self) -> str:
        """The product as its line writes it, ``"q @ k"``; `what`, if that is not to be found."""
        is_there = not self.place.startswith(NEAR)
        return (product_in(self.place) if is_there else "") or self.what

    def __str__(self) -> str:
        times = f", {self.count} times" if self.count > 1 else ""
        return encode_safely(escape_control_chars(f"{self.place}: {self.what} in {self.to}{times}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedProgram:
    """A program of the block, and whether it computes as the target's own would."""

    function: str
    signature: tuple[str, ...]
    call_site: CallSite | str
    faithful: bool
    reason: str = ""
    """Why it is not faithful: then it computes as on this machine."""

    roundings: tuple[RoundingAt, ...] = ()
    """The lines at which the target rounds."""

    cycles: int | None = None
    """What one run takes on the target, by its compiler's own estimate; None where it has none."""

    fallback: str = ""
    """What it was compiled without, where the target's compiler fails only because there is no
    device to try its choice on; empty for almost all.
    """

    def __str__(self) -> str:
        call = f"{self.function}({', '.join(self.signature)})"
        return encode_safely(
            escape_control_chars(call if self.faithful else f"{call}: {self.reason}")
        )


def by_line(sites: Iterable[Site]) -> tuple[RoundingAt, ...]:
    """Sites of one line and one kind together, in the order of the source."""
    found: dict[tuple[CallSite, str, str], int] = {}
    for site in sites:
        key = (site.place, site.what, site.rounding.text)
        found[key] = found.get(key, 0) + 1
    order = sorted(found.items(), key=lambda item: (item[0][0].file, item[0][0].line, item[0][1]))
    return tuple(RoundingAt(*key, count) for key, count in order)


@dataclass
class Emulation:
    """The programs of a block of `jitcount.as_if`, in order.

    >>> from jitcount._emulate.emulator import Emulator
    >>> from jitcount._targets.names import parse
    >>> print(Emulation(Emulator.for_target(parse("tpu:v5e"), timeout=600)))
    As if on tpu:v5e: nothing was compiled
    """

    emulator: Emulator | OtherRounding
    programs: list[EmulatedProgram] = field(default_factory=list)
    """Those that were compiled while the block was open; where it overlaps with others, also what
    these had compiled before, which it uses as well."""

    on_program: Callable[[EmulatedProgram], None] | None = field(default=None, repr=False)
    """Called with each program as it is added."""

    def add(self, program: EmulatedProgram) -> None:
        """Add a program; called in the thread that compiled it."""
        self.programs.append(program)
        if self.on_program is not None:
            self.on_program(program)

    @property
    def target(self) -> str:
        """The name of the target that the block emulates."""
        return self.emulator.name

    @property
    def faithful(self) -> bool:
        """Whether all programs compute as the target's own would."""
        return all(program.faithful for program in self.programs)

    def lines(self) -> list[CallSite]:
        """The lines at which the target rounds, each once."""
        every = (rounding.place for program in self.programs for rounding in program.roundings)
        return list(dict.fromkeys(every))

    def error_by_line(self, f: Callable[..., Any], *arguments: Any, **named: Any) -> ErrorByLine:
        """Which lines make ``f(*arguments)`` differ on the target, and by how much of the change.

        `f` is called once for each line that rounds, again for the lines that count, with the
        highest precision there, and twice more: it must return the same for the same arguments, and
        not consume them.
        """
        from jitcount._emulate.error import error_by_line  # noqa: PLC0415 (it opens blocks itself)

        return error_by_line(self._target_emulator("error_by_line"), f, *arguments, **named)

    def error_bound(self, f: Callable[..., Any], *arguments: Any, **named: Any) -> ErrorBound:
        """How far the chip's own ``f(*arguments)`` may be from this: orders of sums, last ulps.

        `f` is called five times.
        """
        from jitcount._emulate.error import error_bound  # noqa: PLC0415 (the same)

        return error_bound(self._target_emulator("error_bound"), f, *arguments, **named)

    @property
    def arithmetic(self) -> Facts:
        """What is known of the target's arithmetic, and what becomes of it here."""
        return Facts(self.target, facts_of(self._target_emulator("arithmetic").target))

    def _target_emulator(self, wanted: str) -> Emulator:
        if isinstance(self.emulator, OtherRounding):
            raise ValueError(  # noqa: TRY004 (the emulation is as it should be)
                f"{wanted} is about a target's arithmetic, and this is {self.emulator.written}; "
                "jitcount.tolerance(f, x) says how far rounding may move a result, and by which "
                "lines"
            )
        return self.emulator

    def __str__(self) -> str:
        from jitcount._show.emulation_table import emulation_table  # noqa: PLC0415 (to the right)
        from jitcount._show.terminal import render  # noqa: PLC0415

        return render(emulation_table(self))


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one target's arithmetic; prints as a table."""

    target: str
    facts: tuple[Fact, ...]

    def __str__(self) -> str:
        from jitcount._show.emulation_table import facts_table  # noqa: PLC0415 (to the right)
        from jitcount._show.terminal import render  # noqa: PLC0415

        return render(facts_table(self))
