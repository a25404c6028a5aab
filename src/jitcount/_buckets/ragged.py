"""The ragged axes in a ledger: which lengths they took, and what their recompiles cost."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jitcount._explain.causes.arrays import Shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jitcount._explain.compile import Compile
    from jitcount._observe.array_type import ArrayType
    from jitcount._observe.call_site import CallSite


@dataclass(frozen=True)
class RaggedAxes:
    """Axes of a function's arguments that have one length, which took several values."""

    function: str
    call_site: CallSite
    axes: tuple[tuple[str, int], ...]
    """Each place with its axis: ``(("x", 0), ("batch['y']", 0))``."""

    lengths: tuple[int, ...]
    """The lengths that were compiled, each once: how often each came, a ledger does not say."""

    compile_s: float
    """The median of what one compile took."""

    total_s: float
    """What all of them took."""

    @property
    def by_place(self) -> dict[str, int | tuple[int, ...]]:
        """The axes as `jitcount.bucketed` takes them."""
        found: dict[str, tuple[int, ...]] = {}
        for place, axis in self.axes:
            found[place] = (*found.get(place, ()), axis)
        return {place: axes[0] if len(axes) == 1 else axes for place, axes in found.items()}


def ragged_axes(compiles: Iterable[Compile]) -> list[RaggedAxes]:
    """The ragged axes of all functions, the most expensive first.

    Axes that changed together, from and to the same lengths, have one length.
    """
    groups: dict[tuple[str, str], list[Compile]] = {}
    for compiled in compiles:
        if not compiled.eager and not compiled.from_disk:
            groups.setdefault((compiled.function, compiled.call_site), []).append(compiled)
    found = [ragged for group in groups.values() for ragged in _in_function(group)]
    return sorted(found, key=lambda ragged: -ragged.total_s)


def _in_function(group: Sequence[Compile]) -> list[RaggedAxes]:
    """The ragged axes of one function at one line."""
    changes: dict[tuple[str, int], dict[int, tuple[int, int]]] = {}
    for number, compiled in enumerate(group):
        for cause in compiled.causes:
            if not isinstance(cause, Shape):
                continue
            for axis in cause.axes:
                pair = _length(cause.old, axis), _length(cause.new, axis)
                changes.setdefault((cause.where, axis), {})[number] = pair
    together: dict[tuple[tuple[int, tuple[int, int]], ...], list[tuple[str, int]]] = {}
    for axis_at, by_compile in changes.items():
        together.setdefault(tuple(by_compile.items()), []).append(axis_at)
    return [_ragged(group, history, axes) for history, axes in together.items()]


def _length(array: ArrayType, axis: int) -> int:
    """The length of an axis; 0 where it is a symbol, as in a function that was exported."""
    length = array.shape[axis]
    return length if isinstance(length, int) else 0


def _ragged(
    group: Sequence[Compile],
    history: Sequence[tuple[int, tuple[int, int]]],
    axes: Sequence[tuple[str, int]],
) -> RaggedAxes:
    took = [group[number].total_s for number, _ in history]
    lengths = {length for _, pair in history for length in pair if length}
    return RaggedAxes(
        function=group[0].function,
        call_site=group[0].call_site,
        axes=tuple(axes),
        lengths=tuple(sorted(lengths)),
        compile_s=statistics.median(took),
        total_s=sum(took),
    )
