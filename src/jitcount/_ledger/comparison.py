"""`Comparison`: what `jitcount.compare` found, as facts; `_show` makes tables of them."""

from __future__ import annotations

import enum
import math
import statistics
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Where a case of one ledger stands, as seen from the first ledger that has it.
SAME = "same"
OTHER_DTYPE = "other dtype"
"""The same numbers in another one, as x64 makes them of whole ones: neither the same nor wrong."""

NEAR = "near"
WRONG = "wrong"
MISSING = "missing"
UNSUPPORTED = "unsupported"
UNJUDGED = "unjudged"
"""Other bits, and where they differ no tolerance exists."""

KNOWN_WRONG = "known wrong"
"""Wrong by a public miscompile of that release, and expected to be."""

# Fields of a cell with these values are left out of plain data.
_NOTHING: tuple[object, ...] = (None, "", {})

# So many names of cases are written in one line.
_MOST_NAMES = 8


@dataclass(frozen=True, slots=True)
class Difference:
    """Something in a ledger that should not be so.

    >>> print(Difference("sum-10", "tpu", "is missing"))
    sum-10 in tpu: is missing
    """

    case: str
    """The name of the case; empty where it is about more than one."""

    ledger: str
    text: str

    def __str__(self) -> str:
        where = f"{self.case} in {self.ledger}" if self.case else self.ledger
        return f"{where}: {self.text}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One case in one ledger."""

    state: str
    ulps: int = 0
    """How far the worst element is from the first ledger's."""

    dtype: str = ""
    """The dtype of its results, where that is not the first ledger's."""

    compile_ratio: float | None = None
    """Seconds of its compiles, against the first ledger's."""

    figures: Mapping[str, float] | None = None
    """By benchmark, its seconds against the first ledger's, where both have it."""

    reference: str = ""
    """The public report of the miscompile that makes it wrong."""


@dataclass(frozen=True, slots=True)
class Row:
    """One case in all ledgers."""

    case: str
    share: float | None
    """The most that a ledger uses of the case's bounds; None where all is exact."""

    cells: Sequence[Cell]
    remarks: Sequence[str] = ()
    """Of a user's function, what is not judged, or by a declared bound only, and why."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """How well an emulation foresaw a device's results."""

    device: str
    """The name of the device's ledger."""

    emulation: str
    """The name of the emulation's ledger."""

    same: int
    """How many cases have the same bits."""

    near: int
    """How many cases have other bits, within their bounds."""

    missed: tuple[str, ...]
    """The cases that are farther off."""

    def __str__(self) -> str:
        every = self.same + self.near + len(self.missed)
        missed = f": {', '.join(self.missed)}" if self.missed else ""
        return (
            f"{self.device} beside its emulation {self.emulation}: of {every} cases {self.same} to "
            f"the bit, {self.near} within bounds, {len(self.missed)} beyond{missed}"
        )


@dataclass(frozen=True, slots=True)
class Growth:
    """A program that has more operations, or fewer, than in the ledger before.

    >>> print(Growth("train.py", "step", "after", 2113, 8449, "model.py:22 in net"))
    after: step 2,113 → 8,449 operations, at model.py:22 in net
    """

    case: str
    function: str
    ledger: str
    before: int
    after: int
    call_site: str
    """The line that most of it comes from; of ledgers with no profile, that of the call."""

    def __str__(self) -> str:
        change = f"{self.before:,} → {self.after:,} operations"
        return f"{self.ledger}: {self.function} {change}, at {self.call_site}"


OUTSIDE_JIT = "operations outside of jit"
"""What stands for the function of a change where there is none."""


class ChangeKind(enum.StrEnum):
    """What a change between the programs of two runs is; each is a text."""

    APPEARED = "appeared"
    GONE = "gone"
    COMPILES = "compiles"
    """More compiles of a function at its line, or fewer."""

    OPERATIONS = "operations"
    REFUSAL = "refusal"
    """A target refuses it and did not before, or the other way round."""

    MEMORY = "memory"
    """Bytes that a run needs on a target."""

    ARGUMENTS = "arguments"
    """Other arguments; neither more compiles nor other operations."""

    CACHE = "cache"
    """As many programs, of which others came from the persistent cache."""

    CAUSES = "causes"
    """As many compiles, some for another kind of reason than before."""

    ELSEWHERE = "elsewhere"
    """The same program was compiled by another test: the first that needs it compiles it."""


_JUDGED = {
    ChangeKind.APPEARED,
    ChangeKind.GONE,
    ChangeKind.COMPILES,
    ChangeKind.OPERATIONS,
    ChangeKind.REFUSAL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What changed of a function at a line, from the ledger before.

    >>> kind = ChangeKind.OPERATIONS
    >>> print(Change(kind=kind, case="train.py", ledger="after", function="step",
    ...     call_site="model.py:22 in net", before=2113, after=8449))
    step: 2,113 → 8,449 operations at model.py:22 in net
    """

    kind: ChangeKind
    case: str
    ledger: str
    """The later of the two ledgers."""

    function: str
    """The function, or ``"operations outside of jit"``: `why` has their names."""

    call_site: str
    """The line of the call; of operations, with a profile, the line that most of them come from.
    """

    before: int = 0
    after: int = 0
    """How many compiles, operations, refusals or bytes there were, and are."""

    target: str = ""
    has_profile: bool = False
    """Of operations, whether `call_site` is the line that they come from, and not the call's."""

    others: int = 0
    """How many other programs of the function at that line changed, too."""

    why: tuple[str, ...] = ()
    """Why compiles came or went, what a target says, which arguments changed."""

    @property
    def is_difference(self) -> bool:
        """Whether it counts: memory, arguments, causes, and what a cache served, do not."""
        return self.kind in _JUDGED

    def __str__(self) -> str:
        at = f"at {self.call_site}"
        count = self.after or self.before
        compiles = f"{count} {'compile' if count == 1 else 'compiles'}"
        numbers = f"{self.before:,} → {self.after:,}"
        if self.before == self.after:  # of operations outside of jit
            numbers = "other"
        others = f" (and {self.others} more of its programs)" if self.others else ""
        why = "; ".join(self.why)
        refusal = f"no longer refused by {self.target}, {at}"
        if self.after > self.before:
            refusal = f"now refused by {self.target}, {at}: {why}"
        verb = "are" if self.function == OUTSIDE_JIT else "is"
        texts = {
            ChangeKind.APPEARED: f" appeared: {compiles} {at}",
            ChangeKind.GONE: f" {verb} gone: {compiles} {at}",
            ChangeKind.COMPILES: f": {numbers} compiles {at}",
            ChangeKind.OPERATIONS: f": {numbers} operations {at}{others}",
            ChangeKind.REFUSAL: f": {refusal}",
            ChangeKind.MEMORY: f": {self._in_bytes()} on {self.target}, {at}{others}",
            ChangeKind.ARGUMENTS: f": {why} {at}{others}",
            ChangeKind.CACHE: f": {numbers} from the persistent cache {at}",
            ChangeKind.CAUSES: f": compiled for another reason {at}",
            ChangeKind.ELSEWHERE: f": {compiles} in another test than before, {at}",
        }
        return f"{self.function}{texts[self.kind]}"

    def _in_bytes(self) -> str:
        # A room on the right: people print what they have in hand.
        from jitcount._show.text import size  # noqa: PLC0415

        return f"{size(self.before)} → {size(self.after)}"


@dataclass(frozen=True, slots=True)
class Totals:
    """What a ledger holds in all."""

    compiles: int
    disk_hits: int
    """How many programs came from the persistent cache instead."""

    seconds: float
    """Seconds of all of them: tracing, lowering and XLA."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `jitcount.compare` found. Printed, it is what ``jitcount compare`` shows.

    >>> import jax, jitcount, numpy as np, pathlib, tempfile
    >>> with jitcount.record() as log:
    ...     _ = jax.jit(lambda x: 2 * x)(np.zeros(3, np.float32))
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.json"
    >>> log.save(path)
    >>> compared = jitcount.compare(path, path)
    >>> compared.differences, [totals.compiles for totals in compared.totals.values()]
    ([], [1, 1])
    """

    where: Mapping[str, str]
    """By ledger, its machine and versions in words."""

    differences: Sequence[Difference]
    rows: Sequence[Row]
    changed: Mapping[str, Sequence[str]]
    """By ledger, the cases with other bits, of the same dtype, than in the ledger before it."""

    predictions: Sequence[Prediction] = ()
    """For each ledger of a real device and each of its emulation."""

    growths: Sequence[Growth] = ()
    """Programs that have another number of operations than in the ledger before."""

    has_results: bool = True
    """Whether a ledger kept results, as the suite's do.

    If none did, only programs are compared: `rows` and `changed` are empty, and `program_changes`
    has what changed.
    """

    totals: Mapping[str, Totals] = field(default_factory=dict)
    """By ledger, its compiles and their seconds."""

    program_changes: Sequence[Change] = ()
    """Of programs, tests and logs, what changed from each ledger to the next."""

    notes: Sequence[str] = ()
    """What of them was not compared, and why."""

    @property
    def names(self) -> list[str]:
        """The names of the ledgers, in the order of each row's cells."""
        return list(self.where)

    def count(self, number: int, state: str) -> int:
        """How many cases of a ledger, by its number, are in a state."""
        return sum(row.cells[number].state == state for row in self.rows)

    def changes(self, number: int) -> tuple[int, int, float | None]:
        """How many cases of a ledger have the first one's bits, how many others; compile time."""
        cells = [row.cells[number] for row in self.rows]
        ratios = [cell.compile_ratio for cell in cells if cell.compile_ratio is not None]
        states = [cell.state for cell in cells]
        median = statistics.median(ratios) if ratios else None
        return states.count(SAME), states.count(NEAR), median

    def __str__(self) -> str:
        # A room on the right: people look at what they have in hand.
        from jitcount._show.comparison_table import comparison_tables  # noqa: PLC0415
        from jitcount._show.terminal import render  # noqa: PLC0415

        return render(comparison_tables(self))

    def _repr_html_(self) -> str:
        """What a notebook shows of a comparison."""
        from jitcount._show import html  # noqa: PLC0415
        from jitcount._show.comparison_table import comparison_tables  # noqa: PLC0415

        return html.render(comparison_tables(self))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: FBT001, ARG002 (IPython's)
        """What IPython shows of a comparison in a terminal."""
        printer.text(str(self))

    def to_dict(self) -> dict[str, Any]:
        """All of the comparison as plain data, as JSON has it."""
        ledgers: dict[str, dict[str, Any]] = {}
        for number, (name, where) in enumerate(self.where.items()):
            if not self.has_results:
                ledgers[name] = {"where": where}
                continue
            same, near, ratio = self.changes(number)
            ledgers[name] = {
                "where": where,
                "same_bits": same,
                "within_bounds": near,
                "compile_ratio": ratio,
                "changed": list(self.changed.get(name, ())),
            }
        return {
            "ledgers": ledgers,
            "totals": {name: asdict(totals) for name, totals in self.totals.items()},
            "program_changes": [asdict(change) for change in self.program_changes],
            "notes": list(self.notes),
            "growths": [asdict(growth) for growth in self.growths],
            "differences": [asdict(difference) for difference in self.differences],
            "cases": {row.case: self._in_each(row) for row in self.rows},
            "predictions": [asdict(prediction) for prediction in self.predictions],
        }

    def _in_each(self, row: Row) -> dict[str, Any]:
        is_far = row.share is not None and not math.isfinite(row.share)
        used = "beyond" if is_far else row.share
        standing = {
            name: {key: value for key, value in asdict(cell).items() if value not in _NOTHING}
            for name, cell in zip(self.names, row.cells, strict=True)
        }
        remarks = {"remarks": list(row.remarks)} if row.remarks else {}
        return {"bound_used": used, **remarks, "in": standing}


def some(names: Sequence[str]) -> str:
    """Names in a line; of many, the first, and how many more.

    >>> some(["a", "b"]), some([*"abcdefghijk"])
    ('a, b', 'a, b, c, d, e, f, g, h and 3 more')
    """
    more = len(names) - _MOST_NAMES
    also = f" and {more} more" if more > 0 else ""
    return f"{', '.join(names[:_MOST_NAMES])}{also}"
