"""From a compile in flight to what is known of it: written out, with its causes.

While the user's program waits, only the nearest earlier programs are looked up; the rest is worked
out here, when a log or a guard asks for it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from jitcount._explain.callers import written_callers
from jitcount._explain.causes.cause import is_redaction_requested
from jitcount._explain.causes.functions import (
    CachesCleared,
    FirstCall,
    NewFunction,
    Transform,
    Unknown,
)
from jitcount._explain.compile import Argument, Compile
from jitcount._explain.diff import differences, distance
from jitcount._observe.call_site import argument_in
from jitcount._observe.statics import Static
from jitcount._observe.values import Leaf, signature_of

if TYPE_CHECKING:
    from jitcount._explain.causes import AnyCause
    from jitcount._observe.callers import CallerFrame
    from jitcount._observe.in_flight import InFlightCompile
    from jitcount._observe.program import Program, Value
    from jitcount._profile.result import Profile
    from jitcount._targets.result import OnTarget

_logger = logging.getLogger("jitcount")

_FIELDS = frozenset(Compile.__struct_fields__)


def to_compile(
    seen: InFlightCompile,
    on: dict[str, OnTarget] | None = None,
    *,
    redact: bool = False,
    outer: tuple[CallerFrame, ...] = (),
) -> Compile:
    """Write out a compile that was seen, with its causes; fields of the same name are copied.

    Args:
        seen: the compile.
        on: by target, what its compiler says of the program.
        redact: leave out the user's values, as if the environment asked for it.
        outer: the lines that led to the block that records; those that call it are left out.
    """
    causes = _causes(seen)
    if redact or is_redaction_requested():
        causes = tuple(cause.redacted() for cause in causes)
    written: dict[str, Any] = {
        "signature": signature_of(seen.avals or ()),
        "arguments": _arguments(seen.program),
        "callers": written_callers(_from_block_on(seen.callers, outer)),
        "call_site": seen.sites.user,
        "via": seen.sites.via,
        "fingerprint": seen.measure.fingerprint if seen.measure else "",
        "operations": seen.measure.operations if seen.measure else 0,
        "causes": causes,
        "on": {} if on is None else on,
        "profile": _profile(seen),
    }
    copied = {name: getattr(seen, name) for name in _FIELDS - written.keys()}
    return Compile(**copied, **written)


def _from_block_on(
    callers: tuple[CallerFrame, ...], outer: tuple[CallerFrame, ...]
) -> tuple[CallerFrame, ...]:
    """The callers from the function on in which a block was opened."""
    calling = [(caller.code, caller.instruction) for caller in outer[:-1]]
    begin = [(caller.code, caller.instruction) for caller in callers[: len(calling)]]
    return callers[len(calling) :] if begin == calling else callers


def _arguments(program: Program | None) -> tuple[Argument, ...]:
    """The arguments of a call, each with its arrays counted."""
    if program is None or program.function is None:
        return ()
    places: dict[str, list[Value]] = {}
    for place, value in program.by_place.items():
        places.setdefault(argument_in(place), []).append(value)
    return tuple(_argument(name, values) for name, values in places.items())


def _argument(name: str, values: list[Value]) -> Argument:
    leaves = [value for value in values if isinstance(value, Leaf)]
    is_array = len(values) == len(leaves) == 1
    return Argument(
        name=name,
        leaves=len(leaves),
        type=str(leaves[0].type) if is_array else "",
        is_static=all(isinstance(value, Static) for value in values),
    )


def _profile(seen: InFlightCompile) -> Profile | None:
    if seen.profile is None:
        return None
    try:
        from jitcount._profile.attribution import profile_of  # noqa: PLC0415 (its room is large)

        return profile_of(
            seen.profile,
            trace_s=seen.trace_s,
            lower_s=seen.lower_s,
            compile_s=seen.compile_s,
            call_site=seen.sites.user,
            from_disk=seen.from_disk,
        )
    except Exception:  # observing must never fail the user's program
        _logger.debug("could not write a profile of %s", seen.function, exc_info=True)
        return None


def _causes(seen: InFlightCompile) -> tuple[AnyCause, ...]:
    if seen.program is None:
        return (Unknown("", "JAX's frames could not be read"),)
    if seen.earlier is None:
        return (Unknown("", "it was compiled by a finalizer, in the midst of another compile"),)
    try:
        return causes_of(seen.program, seen.earlier, is_traced_anew=seen.is_traced_anew)
    except Exception as error:  # observing must never fail the user's program
        _logger.debug("could not explain %s", seen, exc_info=True)
        return (Unknown("", f"{type(error).__name__} while explaining"),)


def causes_of(
    program: Program, earlier: tuple[Program, ...], *, is_traced_anew: bool = False
) -> tuple[AnyCause, ...]:
    """The causes of a compile: all that differs from the nearest of some earlier programs."""
    if not earlier:
        return (FirstCall(program.name, program.transform),)
    if program.function is None:  # an operation: one with as many operands is nearer than any other
        earlier = tuple(one for one in earlier if one.places == program.places) or earlier
    pairs = [(differences(candidate, program), candidate) for candidate in earlier]
    nearest, _ = min(pairs, key=lambda pair: distance(pair[0], pair[1], program))
    if nearest:
        return tuple(nearest)
    prints = {candidate.fingerprint for found, candidate in pairs if not found}
    return (_cause_of_invisible_difference(program, prints, is_traced_anew=is_traced_anew),)


def _cause_of_invisible_difference(
    program: Program, prints: set[str], *, is_traced_anew: bool
) -> AnyCause:
    """The cause of a compile whose call looks the same as those of earlier programs.

    Args:
        program: what was compiled.
        prints: the fingerprints of those earlier programs.
        is_traced_anew: JAX holds another jaxpr of the same program.
    """
    under = f"under {program.transform}"
    if program.fingerprint and "" not in prints and program.fingerprint not in prints:
        if program.transform:
            return Transform(program.name, f"{under} in another way", under)
        return Unknown(
            "", "it is another program, and nothing that can be seen of the call differs"
        )
    if is_traced_anew:
        name = f"{program.name} {under}" if program.transform else program.name
        tokens = "object of another trace", "object of this one"
        return NewFunction(program.name, *tokens, name=name, form="traced")
    if not program.is_known:
        return Unknown("", "the call cannot be seen from where JAX compiles it")
    return CachesCleared(program.name)
