"""One program: through the target's compiler, rewritten, tried elsewhere, compiled here."""

from __future__ import annotations

import hashlib
import sys
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from jitcount._emulate.arithmetic import EXACT, arithmetic_of
from jitcount._emulate.shardings import in_tiles, part_of
from jitcount._emulate.translate import NotKnownError, translate
from jitcount._hlo.locations import sites_at
from jitcount._hlo.parser import estimated_cycles, has_bfloat16_arrays_as_constants
from jitcount._jax import settings
from jitcount._jax.jaxprs import chooses_a_platform, equations
from jitcount._jax.precision import with_highest_precision
from jitcount._jax.replacing import Shards
from jitcount._miscompiles.known import jaxlib_release, known_on, warning
from jitcount._targets.compilers import compilers
from jitcount._targets.lowering import (
    CompileRequest,
    NotPortableError,
    lower_for_target,
)
from jitcount._targets.names import parse
from jitcount._targets.protocol import BuildExecutable
from jitcount._targets.result import fallback_sentence, first_line, what_target_said

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from jitcount._emulate.arithmetic import Arithmetic
    from jitcount._emulate.translate import Site, Translated
    from jitcount._jax.lowering import Lowering
    from jitcount._jax.substituting import Compilable
    from jitcount._observe.call_site import CallSite
    from jitcount._observe.in_flight import LoweredProgram
    from jitcount._targets.names import Target
    from jitcount._targets.protocol import Shardings, WithoutTriton

HERE = parse("cpu")


@dataclass(frozen=True, slots=True)
class Emulated:
    """What became of a program: an executable, or the reason why there is none."""

    executable: Any = None
    sites: tuple[Site, ...] = ()
    reason: str = ""
    cycles: int | None = None
    """The target's compiler's own estimate, where it has one."""

    fallback: str = ""
    """What the target's compiler made it without, and why; empty for almost all."""


@dataclass(frozen=True, slots=True)
class _TargetProgram:
    """What a target's compiler made of a program."""

    hlo: str
    shardings: Shardings | None
    without: WithoutTriton | None = None


@dataclass(frozen=True, slots=True)
class Emulator:
    """Makes programs run on this machine as a target would run them."""

    target: Target
    arithmetic: Arithmetic
    timeout: float
    exact: frozenset[str] = frozenset()
    """Lines whose products are not rounded."""

    raised: frozenset[tuple[str, int]] | None = None
    """Lines, of files, whose products are asked for at the highest precision; empty for all."""

    perturbation_seed: int = 0
    """Seed for perturbing unknown hardware rounding; 0 disables it."""

    @classmethod
    def for_target(cls, target: Target, timeout: float) -> Emulator:
        """An emulator with the target's own arithmetic."""
        return cls(target, arithmetic_of(target), timeout)

    @property
    def name(self) -> str:
        """The target's name: ``"tpu:v5e"``."""
        return self.target.name

    @property
    def written(self) -> str:
        """The call that opens a block of it."""
        exact = ", exact_products=True" if self.arithmetic is EXACT else ""
        return f"as_if({self.name!r}{exact})"

    def get_ready(self) -> None:
        """Start the compilers of the target and of this machine, beside the user's program."""
        compilers().get_ready(self.target)
        compilers().get_ready(HERE)

    def emulate(self, compilable: Compilable, lowered_program: LoweredProgram | None) -> Emulated:
        """Make an executable that computes as the target would.

        It never raises: a program that cannot be emulated has a reason, and runs as it always does.
        """
        try:
            return self._emulated(compilable, lowered_program)
        except (NotPortableError, NotKnownError) as error:
            return Emulated(reason=first_line(str(error)))
        except Exception as error:  # noqa: BLE001 (it must run, whatever happens)
            return Emulated(reason=first_line(f"{type(error).__name__}: {error}"))

    def _emulated(self, compilable: Compilable, lowered_program: LoweredProgram | None) -> Emulated:
        if compilable.platform != HERE.platform:
            raise NotKnownError(f"compiled for {compilable.platform}, not for the CPU")
        if compilable.processes > 1:
            raise NotKnownError(f"its devices are of {compilable.processes} processes")
        if lowered_program is None or (
            lowered_program.lowering is None and lowered_program.compilation is not None
        ):
            raise NotPortableError(
                "it was lowered before the block began; call .lower() inside the block"
            )
        lowering = lowered_program.lowering
        if lowering is not None and chooses_a_platform(lowering.jaxpr):
            # The branch for the target may have operations that JAX cannot lower here: it raises.
            raise NotPortableError(
                "lax.platform_dependent outside of jit takes the branch for this machine"
            )
        request = lower_for_target(lowered_program, self.target.platform, keep_places=True)
        if request.left_out:
            kinds = sorted({each.kind for each in request.left_out})
            call = "calls" if len(kinds) == 1 else "call"
            raise NotPortableError(f"{' and '.join(kinds)} {call} back into Python")
        if self.raised is not None:
            request = replace(
                request, bytecode=with_highest_precision(request.bytecode, self.raised)
            )
        is_float32 = not compilable.has_bfloat16()
        made = self._made(request)
        # Constants that the compiler has rounded itself: no bit of these comes back. At the highest
        # precision it leaves them as they are.
        if is_float32 and self.arithmetic is EXACT and has_bfloat16_arrays_as_constants(made.hlo):
            highest = with_highest_precision(request.bytecode, ())
            made = self._made(replace(request, bytecode=highest))
        fallback = fallback_sentence(made.without, request.products)
        if fallback:
            _require_not_miscompiled(made.hlo, self.target, fallback)
        found = translate(
            made.hlo,
            self.arithmetic,
            exact=self.exact,
            devices=compilable.devices,
            is_float32=is_float32,
            perturbation_seed=self.perturbation_seed,
            products=_products_in(lowering),
            deep=request.stacks,
        )
        shards = _shards(compilable, made.shardings) if compilable.devices > 1 else None
        _require_same_types(compilable, shards, found)
        text = compilable.with_body(found.text, shards, has_long_chains=found.has_long_chains)
        executable = self._executable(compilable, text, request.task.devices)
        return Emulated(
            executable,
            found.sites,
            cycles=estimated_cycles(made.hlo),
            fallback=fallback,
        )

    def _made(self, request: CompileRequest) -> _TargetProgram:
        """What the target's compiler makes of a program; a test suite has the same one often.

        Raises:
            NotKnownError: the compiler refuses it, or has died.
        """
        key = self.target.name, request.fingerprint
        made = _programs.get(key)
        if made is None:
            task = msgspec.structs.replace(request.task, keep_hlo=True)
            answer = compilers().ask(self.target, task, request.bytecode, self.timeout)
            if answer.error is not None:
                raise NotKnownError(what_target_said(self.target.name, answer.error))
            made = _TargetProgram(answer.block.decode(), answer.shardings, answer.without_triton)
            _programs.put(key, made)
        return made

    def _executable(self, compilable: Compilable, text: str, devices: int) -> Any:
        """Compile in another process first: a compiler that ends there ends nothing here.

        What that one has made is loaded; where it cannot be, it is compiled again.
        """
        options = compilable.options
        digest = hashlib.sha256(options + b"\0" + text.encode()).digest()
        written = _executables.get(digest)
        if written is None:
            written = self._built(text, options, devices)
            _executables.put(digest, written)
        made = compilable.load(text, written) if written else None
        return compilable.compile(text) if made is None else made

    def _built(self, text: str, options: bytes, devices: int) -> bytes:
        """An executable for this machine from another process; empty where it cannot travel."""
        task = BuildExecutable(
            devices=devices, compile_options=options, settings=settings.compile_settings()
        )
        answer = compilers().ask(HERE, task, text.encode(), self.timeout)
        if answer.error is not None:
            raise NotKnownError(f"rewritten, the CPU's compiler refuses it: {answer.error}")
        return answer.block


_Kept = TypeVar("_Kept")


class BytesCache(Generic[_Kept]):
    """A cache that is bounded in bytes: the oldest values go first.

    Args:
        most: how many bytes all values together may have.
        size: how many bytes one value has.
    """

    def __init__(self, most: int, size: Callable[[_Kept], int]) -> None:
        self._most = most
        self._size_of = size
        self._kept: dict[Hashable, _Kept] = {}
        self._size = 0
        self._changing = threading.Lock()

    def get(self, key: Hashable) -> _Kept | None:
        """The value of a key; None where it was never put, or has gone."""
        return self._kept.get(key)

    def put(self, key: Hashable, value: _Kept) -> None:
        """Keep a value, and drop the oldest where there is no room."""
        with self._changing:
            if key in self._kept:
                self._size -= self._size_of(self._kept.pop(key))
            self._kept[key] = value
            self._size += self._size_of(value)
            while self._size > self._most:
                self._size -= self._size_of(self._kept.pop(next(iter(self._kept))))


# Two caches of the process: a test suite has the same programs often.

_programs: BytesCache[_TargetProgram] = BytesCache(128 << 20, lambda made: sys.getsizeof(made.hlo))
"""What targets' compilers made of programs, by target and fingerprint."""

_executables: BytesCache[bytes] = BytesCache(64 << 20, len)
"""Executables for this machine, by their text and options; empty where they cannot travel."""


_PRODUCTS = frozenset({"conv_general_dilated", "dot_general"})


def _products_in(lowering: Lowering | None) -> list[CallSite]:
    """The lines of a program's products."""
    every = () if lowering is None else equations(lowering.jaxpr)
    return [sites_at(each.stack).user for each in every if each.primitive in _PRODUCTS]


def _require_not_miscompiled(hlo: str, target: Target, fallback: str) -> None:
    """Raise where a fallback may be computed wrongly: no device would have to take it."""
    for miscompile in known_on(target.platform, jaxlib_release()):
        if miscompile.may_be_in and miscompile.may_be_in(hlo):
            raise NotKnownError(f"{fallback}; without them, {warning(miscompile)}")


def _shards(compilable: Compilable, shardings: Shardings | None) -> Shards:
    """How the target has laid out arguments and results on its devices."""
    arguments, results = compilable.signature()
    if shardings is None or (len(arguments), len(results)) != (
        len(shardings.arguments),
        len(shardings.results),
    ):
        raise NotKnownError("how the target lays it out on its devices is not known")
    try:
        given = tuple(map(in_tiles, arguments, shardings.arguments))
        made = tuple(map(in_tiles, results, shardings.results))
        return Shards(
            given, made, tuple(map(part_of, arguments, given)), tuple(map(part_of, results, made))
        )
    except ValueError as error:
        raise NotKnownError(str(error)) from error


def _require_same_types(compilable: Compilable, shards: Shards | None, made: Translated) -> None:
    """Raise where the target's program takes or returns something else than the one in question."""
    if shards is None:
        arguments, results = map(tuple, compilable.signature())
    else:
        arguments, results = shards.argument_types, shards.result_types
    if (made.parameter_types, made.result_types) != (arguments, results):
        raise NotKnownError(
            f"the target's program takes {', '.join(made.parameter_types) or 'nothing'} and gives "
            f"{', '.join(made.result_types) or 'nothing'}, not as here"
        )
