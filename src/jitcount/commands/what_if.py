"""What a loop would cost as `jax.lax.scan`: measured, by each compiler, in processes of their own.

Both programs go through the same compiler, in turns, and the least that each took is what counts.
What this machine's compiler makes of them is run on the same random numbers: the results must be
the same, or as near as rounding allows.
"""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

import jax
import msgspec
import numpy as np

from jitcount._jax import settings
from jitcount._jax.levels import count
from jitcount._jax.lowering import lowered_bytes
from jitcount.numerics.units import gamma
from jitcount.observe.muting import muted
from jitcount.profile.result import AsScan, Measured, Profile
from jitcount.profile.rolling import NotRolledError, as_function, rolled
from jitcount.profile.unrolled import keeper
from jitcount.show.progress import progress
from jitcount.targets.names import parse, topology
from jitcount.targets.process import CompilerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jitcount.explain.compile import Compile
    from jitcount.profile.loops import Found
    from jitcount.profile.result import Loop
    from jitcount.profile.unrolled import Kept
    from jitcount.targets.names import Target

HERE = "cpu"

# So many loops of one program are measured, the largest.
_LOOPS = 3

# A compile that takes less than this is done again, up to so many times: it is too short for one.
_LONG_S = 5.0
_PAIRS = 3

# For one compile; a compiler that takes longer is ended.
_TIMEOUT_S = 1800.0


def measure_loops(targets: Sequence[str]) -> dict[Loop, Loop]:
    """Measure the loops of the programs that were kept; each by what it was before."""
    programs = keeper.programs
    measuring = _Measuring([parse(target) for target in targets], _TIMEOUT_S)
    total = sum(len(program.loops[:_LOOPS]) for program in programs)
    try:
        with progress("as jax.lax.scan", total) as step:
            return measuring.measure(programs, step)
    finally:
        measuring.close()


def with_scans(compiles: Sequence[Compile], measured: dict[Loop, Loop]) -> list[Compile]:
    """Compiles, with what was measured of their loops."""
    return [_with_scans(each, measured) if each.loops else each for each in compiles]


def _with_scans(compiled: Compile, measured: dict[Loop, Loop]) -> Compile:
    loops = tuple(measured.get(loop, loop) for loop in compiled.loops)
    profile = msgspec.structs.replace(compiled.profile or Profile(), loops=loops)
    return msgspec.structs.replace(compiled, profile=profile)


class _Measuring:
    """Measures the loops of some programs; one process for each compiler."""

    def __init__(self, targets: Sequence[Target], timeout: float) -> None:
        self._topologies = {HERE: {"platform": HERE}}
        self._topologies |= {target.name: topology(target, 1) for target in targets}
        self._platforms = {HERE: HERE} | {target.name: target.platform for target in targets}
        self._timeout = timeout
        self._processes: dict[str, CompilerProcess] = {}

    def close(self) -> None:
        """End the processes."""
        for process in self._processes.values():
            process.close()
        self._processes.clear()

    def measure(self, programs: Sequence[Kept], tell: Callable[[str], None]) -> dict[Loop, Loop]:
        """The loops that were measured, by what they were before.

        Args:
            programs: those that were kept.
            tell: is told what has been measured.
        """
        found: dict[Loop, Loop] = {}
        for program in programs:
            for loop, places in program.loops[:_LOOPS]:
                if loop not in found:
                    as_scan = self._as_scan(program, places)
                    found[loop] = msgspec.structs.replace(loop, as_scan=as_scan)
                tell(str(loop.call_site))
        return found

    def _as_scan(self, program: Kept, places: list[Found]) -> AsScan:
        if program.reason:
            return AsScan(reason=program.reason)
        try:
            with muted():
                pair = as_function(program.jaxpr), rolled(program.jaxpr, places)
                return self._compared(program.jaxpr, pair)
        except NotRolledError as error:
            return AsScan(reason=str(error))
        except Exception as error:  # noqa: BLE001 (it costs a line, never the program's exit code)
            text = str(error).strip().partition("\n")[0]
            return AsScan(reason=f"{type(error).__name__}: {text}")

    def _compared(self, jaxpr: Any, pair: tuple[Callable[..., Any], Callable[..., Any]]) -> AsScan:
        avals = jaxpr.in_avals
        given = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
        measured, values = [], ""
        for name, platform in self._platforms.items():
            modules = [lowered_bytes(function, given, platform) for function in pair]
            asked = self._asked(name, jaxpr)
            try:
                seconds, results = self._in_turns(name, asked, modules)
            except Exception as error:  # noqa: BLE001 (the others may do)
                text = str(error).strip().partition("\n")[0]
                measured.append(Measured(compiler=name, error=text))
                continue
            measured.append(Measured(compiler=name, unrolled_s=seconds[0], scan_s=seconds[1]))
            if name == HERE:
                values = compare(*map(_read, results), operations=count(jaxpr.jaxpr))
                if not values:
                    return AsScan(reason="as a scan it computed something else")
        return AsScan(measured=tuple(measured), values=values)

    def _asked(self, name: str, jaxpr: Any) -> dict[str, Any]:
        inputs = [_physical(aval) for aval in jaxpr.in_avals]
        moves = [False] * len(jaxpr.in_avals), [False] * len(jaxpr.out_avals)
        return {
            "program": True,
            "topology": self._topologies[name],
            "devices": 1,
            "keep_hlo": False,
            "may_move": moves,
            "options": {},
            "settings": settings.compile_settings(),
            "inputs": inputs if name == HERE else None,
        }

    def _in_turns(
        self, name: str, asked: dict[str, Any], modules: list[bytes]
    ) -> tuple[list[float], list[bytes]]:
        """The least seconds of the processor that each took, and what they computed."""
        least, results = [math.inf, math.inf], [b"", b""]
        for turn in range(_PAIRS):
            order = (0, 1) if turn % 2 == 0 else (1, 0)
            for which in order:
                answer, block = self._process(name).ask(asked, modules[which], self._timeout)
                if answer.get("error"):
                    raise RuntimeError(answer["error"])
                least[which] = min(least[which], answer["processor_s"])
                results[which] = block or results[which]
            if max(least) > _LONG_S:
                break
        return least, results

    def _process(self, name: str) -> CompilerProcess:
        found = self._processes.get(name)
        if found is None or found.has_ended():
            if found is not None:
                found.close()
            found = self._processes[name] = CompilerProcess()
            found.start(self._topologies[name], self._timeout)
        return found


def _physical(aval: Any) -> tuple[str, list[int]]:
    """Dtype and shape as a compiler has them: a random key is some whole numbers."""
    if jax.numpy.issubdtype(aval.dtype, jax.dtypes.prng_key):
        aval = jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct(aval.shape, aval.dtype))
    return str(aval.dtype), list(aval.shape)


def _read(block: bytes) -> list[np.ndarray]:
    with np.load(io.BytesIO(block)) as held:
        return [held[name].view(jax.numpy.dtype(name.split(" ")[1])) for name in held.files]


def compare(one: list[np.ndarray], other: list[np.ndarray], *, operations: int) -> str:
    """How two results compare; empty where they are not the same."""
    if all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True)):
        return "the same bits"
    pairs = zip(one, other, strict=True)
    return "within rounding" if all(_is_near(a, b, operations) for a, b in pairs) else ""


def _is_near(one: np.ndarray, other: np.ndarray, operations: int) -> bool:
    """Whether two arrays are apart by no more than so many roundings of their largest value."""
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
