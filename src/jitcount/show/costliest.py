"""The costliest compiles of a whole run, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount.show.text import render, seconds, table, times

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jitcount.explain.compile import Compile


def costliest(found: Mapping[str, Sequence[Compile]], most: int) -> str:
    """A headline with the totals of all tests, then the costliest compiles."""
    every = [(test, compiled) for test, compiles in found.items() for compiled in compiles]
    rows = table("time", "function", "cause", "test", right=("time",))
    for test, compiled in sorted(every, key=lambda pair: -pair[1].total_s)[:most]:
        why = "; ".join(str(cause) for cause in compiled.causes)
        rows.add_row(seconds(compiled.total_s), compiled.function, why, test)
    made = sum(not compiled.from_disk for _, compiled in every)
    total = seconds(sum(compiled.total_s for _, compiled in every))
    return render(f"{times(made, 'compile')} in {times(len(found), 'test')}, {total}", rows)
