"""A ledger: a file of what one run found: where it ran, what each case returned and compiled."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from jitcount._explain.compile import Compile, count_compiles
from jitcount._ledger import files
from jitcount._ledger.environment import Environment
from jitcount._ledger.files import encode, read_whole, require_replaceable, write_whole
from jitcount._numerics.arrays import Array
from jitcount._numerics.expected import Expected

if TYPE_CHECKING:
    import os

KIND: Final = files.LEDGER
SCHEMA: Final = 5
"""The version of the format: a type or field that is new, or gone, needs the next number."""

Seconds = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class Result(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One array that a case returned, and what it must be."""

    value: Array
    expected: Expected
    name: str = ""
    """What it is, in words: a case of many small programs names each of them."""


class CaseEntry(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """What one case of the suite, one test or one script returned and compiled."""

    compiles: tuple[Compile, ...] = ()
    expected_compiles: dict[str, Count] | None = None
    """How often each function must be compiled; None where it is not said, or without jit."""

    shares_caches: bool = False
    """Whether it ran with the caches of what ran before, as tests do: what it compiles depends on
    that."""

    targets: tuple[str, ...] = ()
    """The targets for which all of it was compiled too, without their devices."""

    results: tuple[Result, ...] = ()
    figures: dict[str, Seconds] = {}
    """Benchmarks: what was measured, and how long it took."""

    unsupported: str = ""
    """Why this backend cannot run the case."""

    error: str = ""
    """What it raised instead of returning results."""

    as_on_cpu: tuple[str, ...] = ()
    """As if for a target: the programs that could not be emulated, each with its reason."""

    unsteady: str = ""
    """What was wrong when it was run again, as it was compiled."""

    known_wrong: str = ""
    """The public report of the miscompile that must make it wrong here: ``jax #39103``."""

    def counts(self) -> dict[str, int]:
        """How often XLA compiled each function."""
        return count_compiles(self.compiles)


class Ledger(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All that one run found: its environment, and what each case, test or script compiled.

    >>> import jax, jitcount, numpy as np, pathlib, tempfile
    >>> with jitcount.record() as log:
    ...     _ = jax.jit(lambda x: 2 * x)(np.zeros(3, np.float32))
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.json"
    >>> log.save(path)
    >>> ledger = jitcount.load(path)
    >>> ledger.environment.jax == jax.__version__
    True
    >>> ledger.counts(), [c.signature for c in ledger.compiles]
    ({'<lambda>': 1}, [('float32[3]',)])
    >>> list(ledger.cases)
    ['log']
    """

    kind: Literal["jitcount ledger"] = KIND
    schema: int = SCHEMA
    environment: Environment
    """The machine, the devices and the versions that it ran with."""

    started_at: float = 0.0
    """When the program or the block began, in seconds since the epoch; 0.0 if unknown."""

    ended_at: float = 0.0
    """When the program or the block ended, in seconds since the epoch; 0.0 if unknown."""

    cases: dict[str, CaseEntry]
    """The entries by name: a case of the suite, a test's id, a script, or ``"log"``."""

    @property
    def compiles(self) -> tuple[Compile, ...]:
        """The compiles of all entries, one entry after the other."""
        return tuple(compiled for entry in self.cases.values() for compiled in entry.compiles)

    def counts(self) -> dict[str, int]:
        """How often XLA compiled each function, in all entries."""
        return count_compiles(self.compiles)


def load(path: str | os.PathLike[str]) -> Ledger:
    """Read a ledger: of `CompileLog.save`, ``jitcount run``, ``jitcount suite`` or pytest.

    >>> import jax, jitcount, numpy as np, pathlib, tempfile
    >>> with jitcount.record() as log:
    ...     _ = jax.jit(lambda x: 2 * x)(np.zeros(3, np.float32))
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.json"
    >>> log.save(path)
    >>> jitcount.load(path).compiles == log.compiles
    True

    Raises:
        jitcount.LedgerError: the file cannot be read, or is no ledger of this release.
    """
    return read_ledger(Path(path))


def read_ledger(path: Path) -> Ledger:
    """Read a ledger, strictly."""
    return read_whole(path, Ledger, kind=KIND, schema=SCHEMA)


def write_ledger(path: Path, ledger: Ledger) -> bool:
    """Write the ledger of a run, whole or not at all, and over nothing but a ledger.

    A new file can be read by its owner alone: it holds texts of static arguments. Returns whether
    its folder was made for it.
    """
    require_replaceable(path, KIND)
    ordered = msgspec.structs.replace(ledger, cases=dict(sorted(ledger.cases.items())))
    text = msgspec.json.format(encode(ordered), indent=1)
    return write_whole(path, text + b"\n", is_private=True)
