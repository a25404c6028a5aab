"""Describes the call that is compiled, from JAX's frames; nothing that fails here stops a count."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from jitcount._jax import frames
from jitcount.observe.call_site import Sites, sites_in
from jitcount.observe.program import Program, describe, describe_call

if TYPE_CHECKING:
    from types import FrameType

_logger = logging.getLogger("jitcount")


class Description(msgspec.Struct, frozen=True):
    """What could be read of a call."""

    avals: Sequence[Any] | None = None
    program: Program | None = None
    made_by_jax: bool = False
    sites: Sites | None = None


NO_DESCRIPTION = Description()


def described(
    function: str, program: Program | None, frame: FrameType, *, in_full: bool
) -> Description:
    """Describe a call; its program not again, if that was done when it was traced."""
    try:
        call = frames.read_call(frame)
    except Exception:  # a count without a description is better than none
        _logger.debug("could not read JAX's frames", exc_info=True)
        return NO_DESCRIPTION
    # Between here and the call of a jitted function all frames are JAX's.
    sites = sites_in(call.call.caller if isinstance(call.call, frames.JitCall) else frame)
    try:
        if in_full:
            program = program or describe(call, function, sites.user)
    except Exception:  # the same
        _logger.debug("could not describe %s", function, exc_info=True)
    return Description(call.avals, program, call.made_by_jax, sites)


def described_ahead_of_time(function: str, frame: FrameType) -> Program | None:
    """The program of a `.trace()` or `.lower()`, described while its arguments are there."""
    try:
        call = frames.read_tracing(frame)
        return None if call is None else describe_call(call, function)
    except Exception:  # the same
        _logger.debug("could not describe %s", function, exc_info=True)
        return None
