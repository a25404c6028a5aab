"""What one run found, kept as a file: where it ran, and what each case gave and compiled."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from jitcount.ledger.environment import Environment
from jitcount.ledger.files import read_whole, write_whole
from jitcount.numerics.arrays import Array
from jitcount.numerics.judging import Expected
from jitcount.targets.result import OnTarget

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from jitcount.explain.compile import Compile

KIND: Final = "jitcount ledger"
SCHEMA: Final = 2

Seconds = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class CauseEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why something was compiled."""

    kind: str
    where: str
    before: str
    after: str
    advice: str
    sentence: str


class CompileEntry(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """One compile; `jitcount.Compile` says what the fields are."""

    function: str
    signature: tuple[str, ...]
    platform: str
    call_site: str
    eager: bool
    from_disk: bool
    trace_s: Seconds
    lower_s: Seconds
    compile_s: Seconds
    causes: tuple[CauseEntry, ...]
    on: dict[str, OnTarget] = {}
    """By target, what its compiler said; without the program's text."""

    @property
    def total_s(self) -> float:
        """Seconds of all three phases."""
        return self.trace_s + self.lower_s + self.compile_s


class Result(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One array that a case gave, and what it must be."""

    value: Array
    expected: Expected


class CaseEntry(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """What one case, test or program gave and compiled."""

    compiles: tuple[CompileEntry, ...] = ()
    expected_compiles: dict[str, Count] | None = None
    """How often each function must be compiled; None where nobody says, or without jit."""

    targets: tuple[str, ...] = ()
    """For which all of it was compiled too, without their devices."""

    results: tuple[Result, ...] = ()
    figures: dict[str, Seconds] = {}
    """Benchmarks: what was measured, and how long it took."""

    unsupported: str = ""
    """Why this backend cannot run the case."""

    error: str = ""
    """What it raised instead of giving results."""

    def counts(self) -> dict[str, int]:
        """How often each function was compiled."""
        return count_compiles(self.compiles)


class Ledger(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All that one run found."""

    kind: Literal["jitcount ledger"] = KIND
    schema: Literal[2] = SCHEMA
    environment: Environment
    cases: dict[str, CaseEntry]


def entries(compiles: Iterable[Compile]) -> tuple[CompileEntry, ...]:
    """Compiles as plain data, which travels between processes and into a file."""
    return tuple(_entry(compiled) for compiled in compiles)


def _entry(compiled: Compile) -> CompileEntry:
    return CompileEntry(
        function=compiled.function,
        signature=compiled.signature,
        platform=compiled.platform,
        call_site=compiled.call_site,
        eager=compiled.eager,
        from_disk=compiled.from_disk,
        trace_s=compiled.trace_s,
        lower_s=compiled.lower_s,
        compile_s=compiled.compile_s,
        causes=tuple(
            CauseEntry(c.kind, c.where, c.before, c.after, c.advice, c.sentence)
            for c in compiled.causes
        ),
        on={name: dataclasses.replace(result, hlo=None) for name, result in compiled.on.items()},
    )


def count_compiles(compiles: Iterable[CompileEntry], *, with_eager: bool = True) -> dict[str, int]:
    """How often each function was compiled; what came from disk was not."""
    counts: dict[str, int] = {}
    for compiled in compiles:
        if not compiled.from_disk and (with_eager or not compiled.eager):
            counts[compiled.function] = counts.get(compiled.function, 0) + 1
    return counts


def write_ledger(path: Path, ledger: Ledger) -> None:
    """Write the ledger of a run, whole or not at all."""
    ordered = msgspec.structs.replace(ledger, cases=dict(sorted(ledger.cases.items())))
    text = msgspec.json.format(msgspec.json.encode(ordered), indent=1)
    write_whole(path, text + b"\n")


def read_ledger(path: Path) -> Ledger:
    """Read a ledger, strictly."""
    return read_whole(path, Ledger, kind=KIND, schema=SCHEMA)
