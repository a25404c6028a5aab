"""Compile counts, and as text; what reads a budget needs no more, and no NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

Counts = dict[str, Annotated[int, msgspec.Meta(ge=0)]]
"""By function, how often it was compiled, or may be."""


def counts_text(counts: Mapping[str, int]) -> str:
    """Compile counts in a line.

    >>> counts_text({"sum": 2, "add": 1}), counts_text({})
    ('sum 2, add 1', 'nothing')
    """
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "nothing"
