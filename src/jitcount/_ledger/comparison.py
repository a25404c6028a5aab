"""What a comparison of ledgers found, as facts."""

from __future__ import annotations

import math
import statistics
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jitcount._ledger.compare import Growth

# Where a case of one ledger stands, as seen from the first ledger that has it.
SAME = "same"
OTHER_DTYPE = "other dtype"
"""The same numbers in another one, as x64 makes them of whole ones: neither the same nor wrong."""

NEAR = "near"
WRONG = "wrong"
MISSING = "missing"
UNSUPPORTED = "unsupported"

# What a cell says nothing by.
_NOTHING: tuple[object, ...] = (None, "", {})

# Names of cases in one line.
_MOST_NAMES = 8


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that should not be."""

    case: str
    """Empty where it is about more than one."""

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
    """Its own, where that is not the first ledger's."""

    compile_ratio: float | None = None
    """Seconds of its compiles, against the first ledger's."""

    figures: Mapping[str, float] | None = None
    """The same for each benchmark that both have."""


@dataclass(frozen=True, slots=True)
class Row:
    """One case in all ledgers."""

    case: str
    share: float | None
    """The most that a ledger uses of the case's bounds; None where all is exact."""

    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Prediction:
    """What an emulation foresaw of a device's results."""

    device: str
    """The device's ledger, by name."""

    emulation: str
    same: int
    """Cases with the same bits."""

    near: int
    """Cases with others, as near as their bounds want."""

    missed: tuple[str, ...]
    """Cases that are farther off."""

    def __str__(self) -> str:
        every = self.same + self.near + len(self.missed)
        missed = f": {', '.join(self.missed)}" if self.missed else ""
        return (
            f"{self.device} beside its emulation {self.emulation}: of {every} cases {self.same} to "
            f"the bit, {self.near} within bounds, {len(self.missed)} beyond{missed}"
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `jitcount.compare` found. Printed, it is what ``jitcount compare`` shows.

    >>> import jax, jitcount, numpy as np, pathlib, tempfile
    >>> with jitcount.record() as log:
    ...     _ = jax.jit(lambda x: 2 * x)(np.zeros(3, np.float32))
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.json"
    >>> log.save(path)
    >>> compared = jitcount.compare(path, path)
    >>> compared.differences, [row.case for row in compared.rows]
    ([], ['log'])
    """

    where: Mapping[str, str]
    """By ledger, machine and versions, in words."""

    differences: Sequence[Difference]
    rows: Sequence[Row]
    changed: Mapping[str, Sequence[str]]
    """By ledger: the cases whose bits, of one dtype, are others than in the ledger before it."""

    predictions: Sequence[Prediction] = ()
    """Of each real device that an emulation is there of."""

    growths: Sequence[Growth] = ()
    """Programs that have another number of operations than in the ledger before; never judged."""

    @property
    def names(self) -> list[str]:
        """The ledgers, in the order of each row's cells."""
        return list(self.where)

    def count(self, number: int, state: str) -> int:
        """Of a ledger: how many of its cases stand there."""
        return sum(row.cells[number].state == state for row in self.rows)

    def changes(self, number: int) -> tuple[int, int, float | None]:
        """Of a ledger: cases with the first one's bits, and with others; its compile time."""
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
        """What a notebook shows."""
        from jitcount._show import html  # noqa: PLC0415
        from jitcount._show.comparison_table import comparison_tables  # noqa: PLC0415

        return html.render(comparison_tables(self))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: FBT001, ARG002 (IPython's)
        """What IPython shows in a terminal."""
        printer.text(str(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as JSON has it."""
        ledgers = {}
        for number, (name, where) in enumerate(self.where.items()):
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
        return {"bound_used": used, "in": standing}


def some(names: Sequence[str]) -> str:
    """Names in a line; of many, the first, and how many more.

    >>> some(["a", "b"]), some([*"abcdefghijk"])
    ('a, b', 'a, b, c, d, e, f, g, h and 3 more')
    """
    more = len(names) - _MOST_NAMES
    also = f" and {more} more" if more > 0 else ""
    return f"{', '.join(names[:_MOST_NAMES])}{also}"
