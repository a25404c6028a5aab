"""Operations outside of jit, each compiled by itself: what to jit instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._explain.fix import OUTSIDE_JIT, Fix
from jitcount._explain.summary import is_first, sentences_of_many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._explain.compile import Compile

# So many operations outside of jit at one line are worth a jit.
_MANY_OPERATIONS = 5


def outside_jit(compiles: Sequence[Compile]) -> list[Fix]:
    """A fix for each line with operations outside of any jit, each compiled by itself."""
    groups: dict[str, list[Compile]] = {}
    for compiled in compiles:
        if compiled.eager:
            groups.setdefault(compiled.call_site, []).append(compiled)
    return [fix for group in groups.values() if (fix := _fix(group)) is not None]


def _fix(group: Sequence[Compile]) -> Fix | None:
    again = [compiled.causes for compiled in group if not is_first(compiled)]
    are_many = len(group) >= _MANY_OPERATIONS
    if not again and not are_many:
        return None
    return Fix(
        code=OUTSIDE_JIT,
        title="operations outside of jit",
        what=f"{len(group)} operations were compiled one by one",
        call_site=group[0].call_site,
        count=len(group),
        seconds=sum(compiled.total_s for compiled in group),
        is_at_most=True,
        # Of many, what changed does not help: all of them together are the matter.
        changes=() if are_many else tuple(sentences_of_many(again)),
        advice="call it under jax.jit",
        compiles=tuple(group),
    )
