"""Lowers a program for a target's platform, from what JAX's frames hold of it."""

from __future__ import annotations

import functools
import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jitcount._hlo.locations import DeepStacks, sites_at
from jitcount._jax import lowering as _lowering
from jitcount._jax import settings
from jitcount._jax.jaxprs import as_written, equations
from jitcount._jax.jaxprs import callbacks as callbacks_in
from jitcount._observe.call_site import CallSite, sites_in
from jitcount._observe.muting import muted
from jitcount._targets.protocol import CompileModule
from jitcount._targets.result import LeftOut

if TYPE_CHECKING:
    from jitcount._hlo.locations import Stack
    from jitcount._observe.in_flight import LoweredProgram


class NotPortableError(Exception):
    """A program that cannot leave its process; the text says why."""


@dataclass(frozen=True)
class CompileRequest:
    """A program that is lowered for a platform, with all that its compiler needs beside it."""

    bytecode: bytes
    """Its module, as StableHLO bytecode."""

    task: CompileModule
    left_out: tuple[LeftOut, ...] = ()
    """What stayed here: the functions of its callbacks."""

    products: tuple[CallSite, ...] = ()
    """The user's lines that its products come from, by their numbers in the module."""

    stacks: DeepStacks | None = None
    """The stacks of its equations, if it says from which lines it comes."""

    @functools.cached_property
    def fingerprint(self) -> str:
        """The same for the same program, compiled in the same way."""
        how = {name: getattr(self.task, name) for name in ("may_move", "options", "settings")}
        text = json.dumps([self.task.devices, how], sort_keys=True)
        digest = hashlib.sha256(text.encode() + b"\0")
        digest.update(self.bytecode)  # not joined first: it may be large
        return digest.hexdigest()[:32]


def lower_for_target(
    lowered_program: LoweredProgram, platform: str, *, keep_places: bool = False
) -> CompileRequest:
    """Lower a program for a platform; no listener hears of that.

    With `keep_places` the program says from which lines it comes; the same from two lines then is
    not the same.

    Raises:
        NotPortableError: it cannot be lowered; the text says why.
    """
    if lowered_program.reason:
        raise NotPortableError(f"not carried over: {lowered_program.reason}")
    lowering, compilation = lowered_program.lowering, lowered_program.compilation
    if compilation is None:
        raise NotPortableError(
            "not carried over: JAX's frames do not show how it is compiled, as under jax.pmap"
        )
    if lowering is None:
        raise NotPortableError(
            "not carried over: it was lowered before the block began, for this machine only; "
            "call .lower() inside the block, or jax.clear_caches() before it"
        )
    left_out = _left_out(lowering.jaxpr)
    try:
        with muted():
            bytecode, stacks = _lowering.lower_for(
                lowering, platform, has_callbacks=bool(left_out), keep_places=keep_places
            )
    except Exception as error:  # JAX has no rule for it, or it is not what we know
        text = str(error).strip() or type(error).__name__
        if "was exported for platform" in text:
            raise NotPortableError(
                f"it calls what jax.export has exported, and not for {platform}: "
                f'jax.export.export(f, platforms=["{platform}", "cpu"])'
            ) from error
        raise NotPortableError(f"JAX cannot lower it for {platform}: {text}") from error
    task = CompileModule(
        devices=compilation.devices,
        may_move=(compilation.inputs_may_move, compilation.outputs_may_move),
        options={
            name: value if isinstance(value, bool | int | float) else str(value)
            for name, value in compilation.options.items()
        },
        settings=settings.compile_settings(),
    )
    deep = _deep_stacks(lowering.jaxpr) if stacks or keep_places else DeepStacks()
    products = tuple(_line(deep.whole(stack)) for stack in stacks)
    return CompileRequest(bytecode, task, left_out, products, deep if keep_places else None)


def _deep_stacks(jaxpr: Any) -> DeepStacks:
    """The stacks of a program's equations, by which those that are written into it are read."""
    found = DeepStacks()
    for stack in as_written(each.stack for each in equations(jaxpr)):
        found.add(stack)
    return found


def _line(stack: Stack) -> CallSite:
    found = sites_at(stack).user
    text = str(found).removesuffix(" in ")  # the function is not known
    return CallSite(text, found.file, found.line, found.function)


def _left_out(jaxpr: Any) -> tuple[LeftOut, ...]:
    """The callbacks of a program, counted by the user's lines, in their order."""
    found = Counter((each.kind, sites_in(each.frame).user) for each in callbacks_in(jaxpr))
    return tuple(
        LeftOut(kind=kind, call_site=site, count=count) for (kind, site), count in found.items()
    )
