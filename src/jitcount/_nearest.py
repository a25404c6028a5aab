"""What a mistyped name may have been meant to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question with the nearest names; empty where none is near.

    >>> did_you_mean("sum-1O", ["sum-10", "matmul", "sum-100"])
    'did you mean sum-10 or sum-100?'
    >>> did_you_mean("nothing", ["sum-10"])
    ''
    """
    import difflib  # noqa: PLC0415 (only who mistypes pays for it)

    by_folded = {each.casefold(): each for each in known}
    near = difflib.get_close_matches(name.casefold(), by_folded, n=3)
    *others, last = [by_folded[each] for each in near] or [""]
    return f"did you mean {', '.join(others)}{' or ' if others else ''}{last}?" if last else ""
