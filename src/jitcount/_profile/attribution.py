"""Makes a compile's profile of what was found of it: by line and phase, with no time lost."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec

from jitcount._hlo.locations import sites_at
from jitcount._observe.call_site import UNKNOWN_SITE, Sites, owner_of
from jitcount._profile.compiler_events import wall_seconds
from jitcount._profile.draft import Draft
from jitcount._profile.origin import Origin
from jitcount._profile.result import NOT_ATTRIBUTED, Constant, Line, Phase, Profile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jitcount._hlo.locations import DeepStacks
    from jitcount._hlo.mlir import Lowered
    from jitcount._observe.call_site import CallSite
    from jitcount._profile.compiler_events import Account
    from jitcount._profile.optimised import OptimisedProgram

# The share of XLA's time from which on a pass is worth a row.
_WORTH_A_ROW = 0.02

_FROM_DISK = "it came from the persistent cache: XLA compiled nothing"


def profile_of(  # noqa: PLR0913 (keywords)
    draft: object,
    *,
    trace_s: float,
    lower_s: float,
    compile_s: float,
    call_site: CallSite = UNKNOWN_SITE,
    from_disk: bool = False,
) -> Profile | None:
    """The profile of a compile, from its draft; None where it has none.

    If a library jits its own function, no line of the user's is inside of the program: the line
    that called it, `call_site`, takes its place.
    """
    if not isinstance(draft, Draft) or not draft.is_complete:  # a guard asks before XLA begins
        return None
    draft.read()
    if owner_of(call_site.file) == "user":
        draft = _with_call_site(draft, call_site)
    return Profile(
        lines=_with_shares(_lines(draft, trace_s, compile_s), lower_s),
        loops=draft.loops,
        phases=_phases(draft.account, trace_s, lower_s, compile_s),
        constants=draft.constants,
        notes=(_FROM_DISK,) if from_disk else tuple(dict.fromkeys(draft.notes)),
    )


def _with_call_site(draft: Draft, call_site: CallSite) -> Draft:
    """A draft in which what has only a library's line has the line that called, too."""

    def placed(origin: Origin) -> Origin:
        site = origin.sites.user
        if site == UNKNOWN_SITE or owner_of(site.file) != "library":
            return origin
        return origin._replace(sites=Sites(call_site, origin.sites.via or site))

    def moved(figures: Mapping[Origin, float]) -> dict[Origin, float]:
        found: dict[Origin, float] = {}
        for origin, figure in figures.items():
            found[placed(origin)] = found.get(placed(origin), 0) + figure
        return found

    names = ("trace", "jaxpr", "operations", "optimised", "units")
    changed: dict[str, Any] = {name: moved(getattr(draft, name)) for name in names}
    return replace(draft, **changed)


def seconds_by_origin(account: Account, program: OptimisedProgram) -> dict[Origin, float]:
    """The time of the compiler's units of code, shared among the origins of each."""
    found: dict[Origin, float] = {}
    for unit, seconds in zip(account.units, wall_seconds(account.units), strict=True):
        origins = program.origins_of(unit.name)
        for origin, weight in origins.items():
            share = seconds * weight / origins.total()
            found[origin] = found.get(origin, 0.0) + share
    return found


# --- Lines ----------------------------------------------------------------------------------------

# How much a figure says about what a line calls: a stack says more than an instruction's name, and
# a sample of the trace may have met whatever else JAX does.
_SAYS = {"jaxpr_operations": 1000.0, "trace_s": 1e-3}

# The fields of a line that are summed up for it.
_FIGURES = ("trace_s", "compile_s", "jaxpr_operations", "operations", "optimised_operations")

Figures = dict[str, float]


@dataclass(slots=True)
class _Row:
    site: CallSite
    figures: Figures = field(default_factory=dict)
    calls: dict[str, float] = field(default_factory=dict)
    parts: dict[str, Figures] = field(default_factory=dict)


def _lines(draft: Draft, trace_s: float, compile_s: float) -> tuple[Line, ...]:
    found: tuple[Mapping[Origin, float], ...] = (
        _no_more_than(draft.trace, trace_s),
        _no_more_than(draft.units, compile_s),
        draft.jaxpr,
        draft.operations,
        draft.optimised,
    )
    rows: dict[tuple[str, int], _Row] = {}
    rest: Figures = {"trace_s": trace_s, "compile_s": compile_s}
    for name, by_origin in zip(_FIGURES, found, strict=True):
        for origin, figure in by_origin.items():
            site = origin.sites.user
            if site is UNKNOWN_SITE or site == UNKNOWN_SITE:
                if name.endswith("operations"):
                    _raise(rest, name, figure)
                continue
            if not name.endswith("operations"):
                _raise(rest, name, -figure)
            row = rows.setdefault((site.file, site.line), _Row(site))
            _add(row, name, origin, figure)
    lines = sorted(map(_line, rows.values()), key=_cost, reverse=True)
    last = Line(call_site=NOT_ATTRIBUTED, **_plain(rest))
    return (*lines, last) if any(rest.values()) else tuple(lines)


def _with_shares(lines: tuple[Line, ...], lower_s: float) -> tuple[Line, ...]:
    """Lines with their shares of the time that is spent on the program as a whole."""
    whole = sum(line.operations for line in lines)
    rest = lower_s + sum(line.compile_s for line in lines if not line.is_attributed)
    found = [
        msgspec.structs.replace(line, share_s=rest * line.operations / whole)
        if line.is_attributed and whole
        else line
        for line in lines
    ]
    return tuple(sorted(found, key=lambda line: (line.is_attributed, *_cost(line)), reverse=True))


def _add(row: _Row, name: str, origin: Origin, figure: float) -> None:
    _raise(row.figures, name, figure)
    if origin.calls:
        _raise(row.calls, origin.calls, figure * _SAYS.get(name, 1.0))
    for part in filter(None, (origin.transform, str(origin.sites.via))):
        _raise(row.parts.setdefault(part, {}), name, figure)


def _raise(figures: Figures, name: str, by: float) -> None:
    figures[name] = figures.get(name, 0.0) + by


def _line(row: _Row) -> Line:
    inside = [Line(call_site=row.site, part=part, **_plain(f)) for part, f in row.parts.items()]
    return Line(
        call_site=row.site,
        calls=max(row.calls, key=row.calls.__getitem__, default=""),
        inside=tuple(sorted(inside, key=_cost, reverse=True)),
        **_plain(row.figures),
    )


def _plain(figures: Figures) -> dict[str, Any]:
    return {
        name: int(figure) if name.endswith("operations") else max(0.0, float(figure))
        for name, figure in figures.items()
    }


def _cost(line: Line) -> tuple[float, int]:
    return line.total_s, line.operations


def _no_more_than(seconds: Mapping[Origin, float], limit: float) -> dict[Origin, float]:
    """Seconds, scaled down if their sum exceeds that of their phase: clocks differ."""
    whole = sum(seconds.values())
    scale = limit / whole if whole > limit else 1.0
    return {origin: each * scale for origin, each in seconds.items()}


# --- Phases ---------------------------------------------------------------------------------------


def _phases(
    account: Account | None, trace_s: float, lower_s: float, compile_s: float
) -> tuple[Phase, ...]:
    found = [Phase(name="trace", seconds=trace_s), Phase(name="lower", seconds=lower_s)]
    if account is None or not account.passes_s + account.generation_s:
        return (*found, Phase(name="XLA", seconds=compile_s))
    passes = min(account.passes_s, compile_s)
    generation = min(account.generation_s, compile_s - passes)
    longest = tuple(
        Phase(name=name, seconds=seconds)
        for name, seconds in sorted(account.by_pass.items(), key=lambda each: -each[1])[:5]
        if seconds > _WORTH_A_ROW * compile_s
    )
    return (
        *found,
        Phase(name="XLA's passes", seconds=passes, inside=longest),
        Phase(name="code generation", seconds=generation),
        Phase(name="XLA's rest", seconds=compile_s - passes - generation),
    )


# --- Large constants ------------------------------------------------------------------------------
#
# What a function closes over becomes part of the program. XLA computes what follows from constants
# alone when it compiles: with large ones that takes long, for each compile anew.

# Smaller ones are everywhere, and cost nothing.
_LARGE_BYTES = 100_000

# The share of the compile from which on constant folding is worth a word.
_LONG = 0.05

_TENSOR = re.compile(r"tensor<((?:\d+x)*)([a-z]\w*?)(\d+)?>")
_NAMES = {"f": "float", "i": "int", "ui": "uint", "bf": "bfloat", "i1": "bool"}


def large_constants(program: Lowered, deep: DeepStacks) -> tuple[Constant, ...]:
    """The large constants of a program, largest first."""
    found = []
    for form, stack in program.constants:
        name, size = _describe(form)
        if size >= _LARGE_BYTES:
            site = sites_at(deep.whole(stack)).user
            found.append(Constant(call_site=site, type=name, bytes=size))
    return tuple(sorted(found, key=lambda each: -each.bytes))


def _describe(form: str) -> tuple[str, int]:
    """A type of MLIR's as JAX writes it, and its bytes; as it is, and 0, if it is not known.

    >>> _describe("tensor<300x1000xf32>"), _describe("tensor<8xi1>")
    (('float32[300,1000]', 1200000), ('bool[8]', 8))
    """
    match = _TENSOR.fullmatch(form)
    if match is None:
        inner = re.fullmatch(r"tensor<((?:\d+x)*)complex<f(\d+)>>", form)
        if inner is None:
            return form, 0
        shape, kind, bits = inner[1], "complex", 2 * int(inner[2])
    else:
        shape, bits = match[1], int(match[3] or 8)
        kind = _NAMES.get(match[2], match[2])
    sizes = [int(size) for size in shape.split("x") if size]
    name = "bool" if (kind, bits) == ("int", 1) else f"{kind}{bits}"
    return f"{name}[{','.join(map(str, sizes))}]", math.prod(sizes) * max(bits, 8) // 8


def note_folding(draft: Draft) -> None:
    """Attribute the folding of constants to the lines that use large ones, by their sizes."""
    account = draft.account
    if account is None or account.end <= account.begin:
        return
    seconds = sum(s for name, s in account.by_pass.items() if name.startswith("constant_folding"))
    if seconds < _LONG * (account.end - account.begin):
        return
    whole = sum(each.bytes for each in draft.constants)
    if not whole:
        draft.notes.append(
            f"constant folding took {seconds:.1f} s, and no large constant was found"
        )
        return
    for each in draft.constants:
        origin = Origin(Sites(each.call_site), calls="constant folding")
        draft.units[origin] = draft.units.get(origin, 0.0) + seconds * each.bytes / whole
