"""One program: through the target's compiler, rewritten, tried elsewhere, compiled here."""

from __future__ import annotations

import base64
import hashlib
import re
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from jitcount._emulate.arithmetic import EXACT, arithmetic_of
from jitcount._emulate.shardings import layouts_in, part_of
from jitcount._emulate.translate import NotKnownError, translate
from jitcount._jax import settings
from jitcount._jax.precision import with_highest_precision
from jitcount._jax.replacing import Shards
from jitcount._targets.compilers import Job, compilers
from jitcount._targets.lowering import CompileRequest, NotPortableError, lower_for_target
from jitcount._targets.names import parse
from jitcount._targets.result import in_a_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount._emulate.arithmetic import Arithmetic
    from jitcount._emulate.translate import Site
    from jitcount._jax.substituting import Compilable
    from jitcount._observe.in_flight import LoweredProgram
    from jitcount._targets.names import Target
    from jitcount._targets.result import OnTarget

HERE = parse("cpu")

# What targets made of programs, by target and program, the latest of them.
_MOST_PROGRAMS = 512
_programs: dict[tuple[str, str], OnTarget] = {}


class Latest:
    """What was put last, up to so many bytes in all."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[bytes, bytes] = {}
        self._size = 0
        self._changing = threading.Lock()

    def get(self, key: bytes) -> bytes | None:
        """What is kept; None where nothing is, or no longer."""
        return self._kept.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        """Keep it, and let go of the oldest."""
        with self._changing:
            self._size += len(value) - len(self._kept.pop(key, b""))
            self._kept[key] = value
            while self._size > self._most:
                self._size -= len(self._kept.pop(next(iter(self._kept))))


@dataclass(frozen=True, slots=True)
class Emulated:
    """What became of a program: an executable, or why there is none."""

    executable: Any = None
    sites: tuple[Site, ...] = ()
    reason: str = ""
    cycles: int | None = None


@dataclass(frozen=True, slots=True)
class Emulator:
    """Makes a target's programs run here."""

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
        """With the target's own arithmetic."""
        return cls(target, arithmetic_of(target), timeout)

    def get_ready(self) -> None:
        """Start the compilers, beside the user's program."""
        compilers().get_ready(self.target)
        compilers().get_ready(HERE)

    def emulate(self, compilable: Compilable, lowered_program: LoweredProgram | None) -> Emulated:
        """Make an executable that computes as the target would.

        It never raises: a program that cannot be carried over has a reason, and runs as ever.
        """
        try:
            return self._emulated(compilable, lowered_program)
        except (NotPortableError, NotKnownError) as error:
            return Emulated(reason=in_a_line(str(error)))
        except Exception as error:  # noqa: BLE001 (it must run, whatever happens)
            return Emulated(reason=in_a_line(f"{type(error).__name__}: {error}"))

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
        if is_float32 and self.arithmetic is EXACT and _has_rounded(made.hlo or ""):
            highest = with_highest_precision(request.bytecode, ())
            made = self._made(replace(request, bytecode=highest))
        if made.error is not None:
            raise NotKnownError(f"{self.target.name} refuses it: {made.error}")
        found = translate(
            made.hlo or "",
            self.arithmetic,
            exact=self.exact,
            devices=compilable.devices,
            is_float32=is_float32,
            perturbation_seed=self.perturbation_seed,
        )
        shards = _shards(compilable, made.hlo or "") if compilable.devices > 1 else None
        _require_same(compilable.signature() if shards is None else _parts(shards), found.text)
        text = compilable.with_body(found.text, shards, has_long_chains=found.has_long_chains)
        executable = self._executable(compilable, text, request.devices)
        return Emulated(executable, found.sites, cycles=_cycles(made.hlo or ""))

    def _made(self, request: CompileRequest) -> OnTarget:
        """What the target's compiler makes of a program; a test suite has the same one often."""
        key = self.target.name, request.fingerprint
        made = _programs.get(key)
        if made is None:
            made = self._asked(self.target, request, keep_hlo=True)
            if len(_programs) >= _MOST_PROGRAMS:
                _programs.pop(next(iter(_programs)))
            if made.error is None:
                _programs[key] = made
        return made

    def _executable(self, compilable: Compilable, text: str, devices: int) -> Any:
        """Compile in another process first: a compiler that ends there ends nothing here.

        What that one has made is taken over; where it cannot be, it is compiled again.
        """
        options = compilable.options
        digest = hashlib.sha256(options + b"\0" + text.encode()).digest()
        written = _executables.get(digest)
        if written is None:
            written = self._tried(text, options, devices)
            _executables.put(digest, written)
        made = compilable.load(text, written) if written else None
        return compilable.compile(text) if made is None else made

    def _tried(self, text: str, options: bytes, devices: int) -> bytes:
        how = {
            "executable": base64.b64encode(options).decode(),
            "settings": settings.compile_settings(),
        }
        made: list[bytes] = []
        request = CompileRequest(text.encode(), devices, how)
        trial = self._asked(HERE, request, keep_hlo=False, take=made.append)
        if trial.error is not None:
            raise NotKnownError(f"rewritten, the CPU's compiler refuses it: {trial.error}")
        return made[0] if made else b""

    def _asked(
        self,
        target: Target,
        request: CompileRequest,
        *,
        keep_hlo: bool,
        take: Callable[[bytes], None] | None = None,
    ) -> OnTarget:
        """Have a request compiled elsewhere, and wait for it."""
        found: list[OnTarget] = []
        is_there = threading.Event()

        def tell(result: OnTarget) -> None:
            found.append(result)
            is_there.set()

        job = Job(target, request, request.fingerprint, keep_hlo, self.timeout, tell, take=take)
        compilers().submit(job)
        is_there.wait()
        return found[0]


_executables = Latest(64 << 20)
"""What was tried, by its text and options: a test suite has the same programs often."""


def _has_rounded(hlo: str) -> bool:
    """Whether the compiler has rounded constants itself: no bit of these comes back.

    At the highest precision it leaves them as they are.
    """
    return re.search(r" = bf16\[\d[^ ]* constant\(", hlo) is not None


def _cycles(hlo: str) -> int | None:
    """The compiler's own estimate; loops count once. Only XLA:TPU writes one.

    (Its `optimal_seconds` is the same for every precision; these cycles are not.)
    """
    found = re.findall(r'"estimated_cycles":"(\d+)"', hlo)
    return sum(map(int, found)) or None


def _shards(compilable: Compilable, hlo: str) -> Shards:
    """How the target has laid out arguments and results on its devices."""
    layouts = layouts_in(hlo)
    types = compilable.signature()
    if layouts is None or tuple(map(len, types)) != (len(layouts.arguments), len(layouts.results)):
        raise NotKnownError("how the target lays it out on its devices is not known")
    try:
        parts = [
            tuple(map(part_of, whole, shardings))
            for whole, shardings in zip(types, (layouts.arguments, layouts.results), strict=True)
        ]
    except ValueError as error:
        raise NotKnownError(str(error)) from error
    return Shards(layouts.arguments, layouts.results, *parts)


def _parts(shards: Shards) -> tuple[list[str], list[str]]:
    return list(shards.argument_types), list(shards.result_types)


def _require_same(wanted: tuple[list[str], list[str]], text: str) -> None:
    """Raise where the target's program takes or gives something else than the one in question."""
    head = text[: text.index("{\n")]
    arguments, _, results = head.partition(") -> (")
    given = [part.split(": ", 1)[1] for part in arguments.split("(", 1)[1].split(", ") if part]
    made = [part for part in results.rstrip(") ").split(", ") if part]
    if (given, made) != wanted:
        raise NotKnownError(
            f"the target's program takes {', '.join(given) or 'nothing'} and gives "
            f"{', '.join(made) or 'nothing'}, not as here"
        )
