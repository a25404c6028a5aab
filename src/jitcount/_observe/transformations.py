"""A function's transformations in words: which they are, and over what, in the user's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._jax.transforms import GRAD, JVP, LINEARIZE, PARTIAL_EVALUATION, VMAP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._jax.transforms import Transformation


def kinds(transforms: Sequence[Transformation]) -> tuple[str, ...]:
    """What each of them is called; programs are compared where these are the same."""
    return tuple(one.name for one in transforms)


def in_short(transforms: Sequence[Transformation]) -> str:
    """Those that a user has asked for, the outermost first.

    >>> from jitcount._jax.transforms import Transformation
    >>> in_short([Transformation("grad"), Transformation("vmap")])
    'grad of vmap'
    """
    return " of ".join(name for name in kinds(transforms) if name != PARTIAL_EVALUATION)


def in_full(
    transforms: Sequence[Transformation], leaves: Sequence[str] | None = None
) -> tuple[str, list[str]]:
    """All of them with what they are over, the outermost first; "" where nothing is to be said.

    >>> from jitcount._jax.transforms import Transformation
    >>> grad, vmap = Transformation("grad", (0, None)), Transformation("vmap", (0, 1))
    >>> in_full([grad, vmap], ["x", "y"])[0]
    'grad by x around vmap over axis 0 of x, axis 1 of y'

    Args:
        transforms: the outermost first.
        leaves: the arrays that the function is called with; None where they have no names.

    Returns:
        The text, and the names of the arrays that the program is run with; none where they are not
        known.
    """
    names = None if leaves is None else list(leaves)
    texts = []
    for one in reversed(transforms):
        if names is None or len(names) != len(one.over):
            names = None
        texts.append(_in_words(one, names, leaves))
        names = None if names is None else _after(one, names)
    if all(text in {one.name for one in transforms} for text in texts):
        return "", names or []
    return " around ".join(reversed(texts)), names or []


def _after(one: Transformation, names: list[str]) -> list[str]:
    """The arrays that a transformed function takes."""
    if one.name == JVP:
        return [*names, *(f"the tangent of {name}" for name in _chosen(one, names))]
    if one.name == PARTIAL_EVALUATION:
        return _chosen(one, names)
    return names


def _chosen(one: Transformation, names: Sequence[str]) -> list[str]:
    return [name for name, axis in zip(names, one.over, strict=True) if axis is not None]


def _in_words(
    one: Transformation, names: Sequence[str] | None, leaves: Sequence[str] | None
) -> str:
    """One transformation with what it is over, in the user's names where they are known."""
    chosen = _chosen(one, names or [f"array {number}" for number in range(len(one.over))])
    if one.name == VMAP:
        # The length is among the shapes where an array of the user's is mapped.
        is_seen = leaves is None or (names is not None and not set(chosen).isdisjoint(leaves))
        size = "" if one.size is None or (chosen and is_seen) else f" of size {one.size}"
        named = f" with axis_name={one.axis_name}" if one.axis_name else ""
        return f"vmap{size}{named} over {_axes(one, chosen)}"
    if one.name in {GRAD, JVP, LINEARIZE} and chosen:
        return f"{one.name} by {_together(one, chosen)}"
    if one.name == PARTIAL_EVALUATION and one.over:
        return f"{one.name} with {', '.join(chosen) or 'nothing'} known"
    return one.name


def _axes(one: Transformation, chosen: Sequence[str]) -> str:
    axes = [axis for axis in one.over if axis is not None]
    if not axes:
        return "none of its arguments"
    if len(axes) == len(one.over) and len(set(axes)) == 1:
        return f"axis {axes[0]} of every argument"  # whatever they are called
    return ", ".join(f"axis {axis} of {name}" for axis, name in zip(axes, chosen, strict=True))


def _together(one: Transformation, chosen: Sequence[str]) -> str:
    return "every argument" if len(chosen) == len(one.over) else ", ".join(chosen)
