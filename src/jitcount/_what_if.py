"""What a loop would cost as `jax.lax.scan`: measured, by each compiler, in processes of their own.

Both programs go through the same compiler, in turns, and the least that each took is what counts.
What this machine's compiler makes of them is run on the same random numbers: the results must be
the same, or as near as rounding allows.

A scan takes its weights as one array. Where they come apart they are stacked inside of the program,
which takes its time; so they are also stacked beforehand, and both are measured.
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax
import msgspec
import numpy as np

from jitcount._jax import settings
from jitcount._jax.jaxprs import count
from jitcount._jax.lowering import lowered_bytes
from jitcount._loops.find import outermost
from jitcount._loops.result import AsScan, Measured
from jitcount._loops.to_scan import NotAScanError, to_scan, with_stacks
from jitcount._numerics.error_bounds import gamma
from jitcount._observe.muting import muted
from jitcount._profile.result import Profile
from jitcount._show.progress import progress
from jitcount._targets.compilers import Compilers
from jitcount._targets.names import parse
from jitcount._targets.protocol import MeasureModule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._explain.compile import Compile
    from jitcount._loops.find import FoundLoop
    from jitcount._loops.result import Loop
    from jitcount._loops.to_scan import Held, ProgramVariant
    from jitcount._profile.loops import Kept
    from jitcount._targets.names import Target

_HERE = parse("cpu")

# How many loops of one program are measured, the largest.
_LOOPS = 3

# A compile that takes less than this is measured again, up to three times: once is too inexact.
_LONG_S = 5.0
_ROUNDS = 3

# For one compile; a compiler that takes longer is killed.
_TIMEOUT_S = 1800.0


@dataclass(slots=True)
class Scans:
    """What was measured of loops as scans."""

    by_loop: dict[Loop, Loop] = field(default_factory=dict)
    """By a loop as it was found, the same loop with its figures."""

    together: dict[tuple[Loop, ...], AsScan] = field(default_factory=dict)
    """By all loops of a program, the figures of all of them as scans."""


def measure_loops(programs: Sequence[Kept], targets: Sequence[str], found: Scans) -> None:
    """Measure the loops of programs; each figure is in `found` at once."""
    # Compilers of our own: those of blocks are closed by now. One that dies costs its figures:
    # another in its place would hide that.
    measuring = _Measuring([parse(target) for target in targets], Compilers(retry_start=False))
    total = sum(len(_steps_of(program)) for program in programs)
    try:
        with progress("as jax.lax.scan", total) as on_measured:
            for program in programs:
                every = tuple(loop for loop, _ in program.loops)
                for loop, places in _steps_of(program):
                    if loop is None and every not in found.together:
                        found.together[every] = measuring.as_scan(program, places, len(every))
                    elif loop is not None and loop not in found.by_loop:
                        as_scan = measuring.as_scan(program, places, 1)
                        found.by_loop[loop] = msgspec.structs.replace(loop, as_scan=as_scan)
                    on_measured(str(loop.call_site if loop is not None else "all loops"))
    finally:
        measuring.compilers.close()


def with_scans(compiles: Sequence[Compile], measured: Scans) -> list[Compile]:
    """The same compiles, with what was measured of their loops."""
    return [_with_scans(each, measured) if each.loops else each for each in compiles]


def _with_scans(compiled: Compile, measured: Scans) -> Compile:
    loops = tuple(measured.by_loop.get(loop, loop) for loop in compiled.loops)
    together = measured.together.get(compiled.loops)
    profile = compiled.profile or Profile()
    profile = msgspec.structs.replace(profile, loops=loops, as_scans=together)
    return msgspec.structs.replace(compiled, profile=profile)


def _steps_of(program: Kept) -> list[tuple[Loop | None, list[FoundLoop]]]:
    """What is measured of a program: its largest loops, then all of them at once."""
    steps: list[tuple[Loop | None, list[FoundLoop]]] = [*program.loops[:_LOOPS]]
    if len(program.loops) > 1:
        steps.append((None, outermost([each for _, found in program.loops for each in found])))
    return steps


class _Measuring:
    """Measures the loops of some programs, on this machine's compiler and on targets'."""

    def __init__(self, targets: Sequence[Target], compilers: Compilers) -> None:
        self._targets = {target.name: target for target in (_HERE, *targets)}.values()
        self.compilers = compilers

    def as_scan(self, program: Kept, places: list[FoundLoop], loops: int) -> AsScan:
        """Measure a program with so many of its loops, which are at these places, as scans."""
        if program.reason:
            return AsScan(reason=program.reason, loops=loops)
        try:
            with muted():
                found = self._compared(program.jaxpr, places)
        except NotAScanError as error:
            return AsScan(reason=str(error), loops=loops)
        except Exception as error:  # noqa: BLE001 (it costs a line, never the program's exit code)
            text = str(error).strip().partition("\n")[0]
            return AsScan(reason=f"{type(error).__name__}: {text}", loops=loops)
        return msgspec.structs.replace(found, loops=loops)

    def _compared(self, jaxpr: Any, places: list[FoundLoop]) -> AsScan:
        stacks = with_stacks(jaxpr, places)
        variants = [to_scan(jaxpr, ()), to_scan(jaxpr, places), *([stacks] if stacks else [])]
        measured, values = [], ""
        for target in self._targets:
            platform = target.platform
            modules = [lowered_bytes(each.function, each.given, platform) for each in variants]
            tasks = [_task(target, jaxpr, each) for each in variants]
            try:
                seconds, results = self._in_turns(target, tasks, modules)
            except Exception as error:  # noqa: BLE001 (the others may do)
                text = str(error).strip().partition("\n")[0]
                measured.append(Measured(compiler=target.name, error=text))
                continue
            unrolled_s, scan_s, *rest = seconds
            measured.append(
                Measured(
                    compiler=target.name,
                    unrolled_s=unrolled_s,
                    scan_s=scan_s,
                    stacked_s=rest[0] if rest else None,
                )
            )
            if target == _HERE:
                values = _values(variants, results, count(jaxpr.jaxpr))
                if not values:
                    return AsScan(reason="as a scan it computed something else")
        held = variants[-1].arguments or []
        sizes = tuple(len(group) for group in held if len(group) > 1)
        return AsScan(measured=tuple(measured), values=values, stacked=sizes)

    def _in_turns(
        self, target: Target, tasks: list[MeasureModule], modules: list[bytes]
    ) -> tuple[list[float], list[bytes]]:
        """The least seconds of the processor that each took, and what they computed."""
        least, results = [math.inf] * len(modules), [b""] * len(modules)
        for turn in range(_ROUNDS):
            order = range(len(modules))
            for which in order if turn % 2 == 0 else reversed(order):
                answer = self.compilers.ask(target, tasks[which], modules[which], _TIMEOUT_S)
                if answer.error is not None:
                    raise RuntimeError(answer.error)
                least[which] = min(least[which], answer.processor_s)
                results[which] = answer.block or results[which]
            if max(least) > _LONG_S:
                break
        return least, results


def _task(target: Target, jaxpr: Any, variant: ProgramVariant) -> MeasureModule:
    results = len(jaxpr.out_avals) if variant.results is None else len(variant.results)
    stacked = variant.arguments
    return MeasureModule(
        may_move=((False,) * len(variant.given), (False,) * results),
        settings=settings.compile_settings(),
        inputs=tuple(map(_physical, jaxpr.in_avals)) if target == _HERE else None,
        stacked=None if stacked is None else tuple(map(tuple, stacked)),
    )


def _values(variants: Sequence[ProgramVariant], results: Sequence[bytes], operations: int) -> str:
    """How the results compare, all with the first program's; empty where one differs."""
    first, *others = map(read_results, results)
    found = [
        compare(first, taken_apart(each, variant.results), operations=operations)
        for each, variant in zip(others, variants[1:], strict=True)
    ]
    return "" if "" in found else max(found, key=("the same bits", "within rounding").index)


def _physical(aval: Any) -> tuple[str, tuple[int, ...]]:
    """Dtype and shape as a compiler has them: a random key is an array of integers."""
    if jax.numpy.issubdtype(aval.dtype, jax.dtypes.prng_key):
        aval = jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct(aval.shape, aval.dtype))
    return str(aval.dtype), tuple(aval.shape)


def read_results(block: bytes) -> list[np.ndarray]:
    """What a compiler's process has computed, each result as a flat array."""
    with np.load(io.BytesIO(block)) as held:
        return [held[name].view(jax.numpy.dtype(name.split(" ")[1])) for name in held.files]


def taken_apart(results: list[np.ndarray], held: Held | None) -> list[np.ndarray]:
    """Results that were stacked, as the program itself has them."""
    if held is None:
        return results
    found: dict[int, np.ndarray] = {}
    for group, each in zip(held, results, strict=True):
        found.update(zip(group, each.reshape(len(group), -1), strict=True))
    return [found[number].ravel() for number in sorted(found)]


def compare(one: list[np.ndarray], other: list[np.ndarray], *, operations: int) -> str:
    """How two programs' results compare: the words for it; empty where they differ."""
    if all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True)):
        return "the same bits"
    pairs = zip(one, other, strict=True)
    return "within rounding" if all(_is_near(a, b, operations) for a, b in pairs) else ""


def _is_near(one: np.ndarray, other: np.ndarray, operations: int) -> bool:
    """Whether two arrays differ by no more than that many roundings of their largest value."""
    if one.dtype.kind in "biu":
        return bool(np.array_equal(one, other))
    wide, wide_other = one.astype(np.complex128), other.astype(np.complex128)
    is_number = np.isfinite(wide)
    if not np.array_equal(is_number, np.isfinite(wide_other)):
        return False
    scale = np.abs(wide[is_number]).max(initial=0.0)
    kind = {"complex64": "float32", "complex128": "float64"}.get(str(one.dtype), str(one.dtype))
    bound = 2 * gamma(operations, kind) * scale
    return bool(np.all(np.abs(wide - wide_other)[is_number] <= bound))
