"""What one run found, kept as a file: where it ran, and what each case gave and compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from jitcount._explain.compile import Compile
from jitcount._ledger import files
from jitcount._ledger.environment import Environment
from jitcount._ledger.files import encode, read_whole, require_replaceable, write_whole
from jitcount._numerics.arrays import Array
from jitcount._numerics.expected import Expected

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

KIND: Final = files.LEDGER
SCHEMA: Final = 4

Seconds = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class Result(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One array that a case gave, and what it must be."""

    value: Array
    expected: Expected


class CaseEntry(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """What one case, test or script gave and compiled."""

    compiles: tuple[Compile, ...] = ()
    expected_compiles: dict[str, Count] | None = None
    """How often each function must be compiled; None where it is not said, or without jit."""

    targets: tuple[str, ...] = ()
    """For which all of it was compiled too, without their devices."""

    results: tuple[Result, ...] = ()
    figures: dict[str, Seconds] = {}
    """Benchmarks: what was measured, and how long it took."""

    unsupported: str = ""
    """Why this backend cannot run the case."""

    error: str = ""
    """What it raised instead of giving results."""

    as_on_cpu: tuple[str, ...] = ()
    """As if for a target: the programs that could not be carried over, each with its reason."""

    unsteady: str = ""
    """What was wrong when it was run again, as it was compiled."""

    def counts(self) -> dict[str, int]:
        """How often each function was compiled."""
        return count_compiles(self.compiles)


class Ledger(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All that one run found."""

    kind: Literal["jitcount ledger"] = KIND
    schema: Literal[4] = SCHEMA
    environment: Environment
    cases: dict[str, CaseEntry]


def count_compiles(compiles: Iterable[Compile], *, with_eager: bool = True) -> dict[str, int]:
    """How often each function was compiled; what came from disk was not."""
    counts: dict[str, int] = {}
    for compiled in compiles:
        if not compiled.from_disk and (with_eager or not compiled.eager):
            counts[compiled.function] = counts.get(compiled.function, 0) + 1
    return counts


def write_ledger(path: Path, ledger: Ledger) -> None:
    """Write the ledger of a run, whole or not at all, and over nothing but a ledger.

    It is its owner's alone where it is new: it holds texts of static arguments.
    """
    require_replaceable(path, KIND)
    ordered = msgspec.structs.replace(ledger, cases=dict(sorted(ledger.cases.items())))
    text = msgspec.json.format(encode(ordered), indent=1)
    write_whole(path, text + b"\n", is_private=True)


def read_ledger(path: Path) -> Ledger:
    """Read a ledger, strictly."""
    return read_whole(path, Ledger, kind=KIND, schema=SCHEMA)
