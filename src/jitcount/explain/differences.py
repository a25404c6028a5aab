"""What differs between two programs of the same function, as causes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitcount.explain import advice
from jitcount.explain import cause as kinds
from jitcount.explain.cause import Cause
from jitcount.explain.structure import Restructured

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jitcount.observe.functions import Function
    from jitcount.observe.program import Facet, Program
    from jitcount.observe.values import Static

    Values = Mapping[Facet, Any]
    Texts = tuple[tuple[str, str], ...]


def first_call(program: Program) -> Cause:
    """The cause of a first program of a function."""
    under = f" under {program.transform}" if program.transform else ""
    sentence = f"first call of {program.name}{under}"
    return Cause(kinds.FIRST_CALL, program.name, "", "", sentence, advice.first_call(program.name))


def cleared(program: Program) -> Cause:
    """The cause where nothing differs from an earlier program."""
    sentence = (
        f"the identical program of {program.name} had been compiled: caches were cleared, "
        "or the entry was evicted"
    )
    where = program.name
    return Cause(kinds.CACHES_CLEARED, where, "", "", sentence, advice.cleared(where))


def unknown(why: str) -> Cause:
    """The cause that cannot be known."""
    return Cause(kinds.UNKNOWN, "", "", "", f"the cause is not known: {why}", "")


def differences(earlier: Program, later: Program) -> list[Cause]:
    """All that differs, and only that; empty for identical programs."""
    before, after = earlier.by_facet, later.by_facet
    changed = {facet for facet in after if facet in before and before[facet] != after[facet]}
    kinds_changed = {kind for kind, _ in changed}
    found: list[Cause] = []
    if "function" in kinds_changed:
        found.append(_function(before, after))
    if "options" in kinds_changed:
        found += _options(before, after)
    if "config" in kinds_changed:
        found += _config(before, after)
    if not any(cause.where in {"static_argnums", "static_argnames"} for cause in found):
        found += _arguments(before, after, changed, same_places=earlier.facets == later.facets)
    if not found and "parameter" in kinds_changed:
        found += _parameters(before, after)
    return found


def _arguments(
    before: Values, after: Values, changed: set[Facet], *, same_places: bool
) -> Iterator[Cause]:
    kinds_changed = {kind for kind, _ in changed}
    if "keywords" in kinds_changed:
        yield from _convention(before, after)
    restructured = None
    if not same_places or "node" in kinds_changed:
        restructured = Restructured(before, after)
        yield from restructured.causes()
    ordered = [facet for facet in after if facet in changed]
    places = dict.fromkeys(place for _, place in ordered)
    for place in places:
        if restructured is None or not restructured.covers(place):
            yield from _leaf(before, after, place)
            if ("static", place) in changed:
                yield _restatic(place, before["static", place], after["static", place])


# --- The function and its options -----------------------------------------------------------------


def _function(before: Values, after: Values) -> Cause:
    facet = ("function", "")
    return new_function(before[facet], after[facet])


def new_function(old: Function, new: Function) -> Cause:
    """A line of source that made another function object."""
    place = new.place or new.name
    if new.kind == "method":
        sentence = f"{new.name} is a method of another object than before"
    else:
        article = {"lambda": "a new lambda", "partial": "a new partial of"}.get(new.kind, "a new")
        named = article if new.kind == "lambda" else f"{article} {new.name}"
        sentence = f"{named} was made at {place}: JAX knows functions as objects, not as text"
    return Cause(
        kinds.NEW_FUNCTION,
        place,
        f"object {old.token}",
        f"object {new.token}",
        sentence,
        advice.new_function(new.kind, new.name),
    )


def _options(before: Values, after: Values) -> Iterator[Cause]:
    facet = ("options", "")
    pairs = list(_pairs(before[facet], after[facet]))
    named = {name for name, _, _ in pairs}
    for name, old, new in pairs:
        if name.endswith("_argnames") and name.replace("names", "nums") in named:
            continue  # JAX works out the names from the numbers
        sentence = f"another jax.jit of the function has {name}={new} instead of {old}"
        yield Cause(kinds.JIT_OPTIONS, name, old, new, sentence, advice.jit_options(name, old))


def _config(before: Values, after: Values) -> Iterator[Cause]:
    facet = ("config", "")
    blocks = before[facet].set_for_a_block | after[facet].set_for_a_block
    for name, old, new in _pairs(before[facet].texts, after[facet].texts):
        sentence = f"the setting {name} went from {old} to {new}"
        hint = advice.config(name, for_a_block=name in blocks)
        yield Cause(kinds.CONFIG, name, old, new, sentence, hint)


def _pairs(before: Texts, after: Texts) -> Iterator[tuple[str, str, str]]:
    """Names, old and new texts of what differs."""
    old, new = dict(before), dict(after)
    for name, text in new.items():
        if name in old and old[name] != text:
            yield name, old[name], text


# --- The arguments --------------------------------------------------------------------------------


def _convention(before: Values, after: Values) -> Iterator[Cause]:
    facet = ("keywords", "")
    old, new = (set(side.get(facet, ())) for side in (before, after))
    there = _argument_names(before) & _argument_names(after)
    for name in sorted((old ^ new) & there):
        was, now = ("by keyword", "by position") if name in old else ("by position", "by keyword")
        sentence = f"{name} was passed {now} instead of {was}"
        yield Cause(kinds.CALL_CONVENTION, name, was, now, sentence, advice.convention(name, was))


def _argument_names(values: Values) -> set[str]:
    kinds_of_facets = {"shape", "node", "static"}
    return {_argument(place) for kind, place in values if kind in kinds_of_facets}


def _argument(place: str) -> str:
    """The argument that a place is in: ``params`` of ``params['a'].b``."""
    for index, character in enumerate(place):
        if character in "[.":
            return place[:index]
    return place


def _leaf(before: Values, after: Values, place: str) -> Iterator[Cause]:
    if ("shape", place) not in before or ("shape", place) not in after:
        return
    shapes = before["shape", place], after["shape", place]
    dtypes = before["dtype", place], after["dtype", place]
    if shapes[0] != shapes[1]:
        yield _reshaped(place, shapes, dtypes)
    if dtypes[0][0] != dtypes[1][0]:
        yield _retyped(place, dtypes[0][0], dtypes[1][0])
    elif dtypes[0] != dtypes[1] and shapes[0] == shapes[1]:
        yield _weakened(place, dtypes[1], is_scalar=not shapes[1])
    placements = before["placement", place], after["placement", place]
    if placements[0] != placements[1]:
        yield _moved(place, *placements)


def _reshaped(place: str, shapes: tuple[Any, Any], dtypes: tuple[Any, Any]) -> Cause:
    texts = [
        f"{dtype}[{','.join(map(str, shape))}]"
        for shape, (dtype, _) in zip(shapes, dtypes, strict=True)
    ]
    old, new = shapes
    became = f"{texts[0]} became {texts[1]}"
    if len(old) != len(new):
        sentence = f"{place} went from rank {len(old)} to rank {len(new)}: {became}"
        return Cause(kinds.SHAPE, place, texts[0], texts[1], sentence, advice.rank(place, len(old)))
    axes = [axis for axis, (o, n) in enumerate(zip(old, new, strict=True)) if o != n]
    if len(axes) == 1:
        axis = axes[0]
        changed = f"axis {axis} of {place} went from {old[axis]} to {new[axis]}"
    else:
        changed = f"axes {', '.join(map(str, axes))} of {place} changed"
    sentence = f"{changed}: {became}"
    return Cause(kinds.SHAPE, place, texts[0], texts[1], sentence, advice.shape(place, axes))


def _retyped(place: str, old: str, new: str) -> Cause:
    sentence = f"{place} went from {old} to {new}"
    return Cause(kinds.DTYPE, place, old, new, sentence, advice.dtype(place, old))


def _weakened(place: str, new: tuple[str, bool], *, is_scalar: bool) -> Cause:
    dtype, is_weak = new
    texts = [dtype, f"weak {dtype}"]
    weakly = f"weakly typed {dtype} (as Python scalars and what is made of them)"
    sentence = f"{place} went from {dtype} to {weakly}"
    if not is_weak:
        texts.reverse()
        sentence = f"{place} went from {weakly} to {dtype}"
    hint = advice.weak_type(place, dtype, is_scalar=is_scalar)
    return Cause(kinds.WEAK_TYPE, place, texts[0], texts[1], sentence, hint)


def _moved(place: str, old: Any, new: Any) -> Cause:
    texts = ["no device in particular" if side is None else side[1] for side in (old, new)]
    if "sharding" not in {side[0] for side in (old, new) if side is not None}:
        sentence = f"{place} went from {texts[0]} to {texts[1]}"
        hint = advice.device(place, texts)
        return Cause(kinds.DEVICE, place, texts[0], texts[1], sentence, hint)
    sentence = f"{place} was sharded as {texts[1]} instead of {texts[0]}"
    hint = advice.sharding(place)
    return Cause(kinds.SHARDING, place, texts[0], texts[1], sentence, hint)


def _restatic(place: str, old: Static, new: Static) -> Cause:
    if new.compares_by_identity and old.type_name == new.type_name:
        sentence = (
            f"static argument {place} is another {new.type_name} object, "
            f"and {new.type_name} has no __eq__ to say that they are equal"
        )
        hint = advice.no_equality(place, new.type_name)
    elif new.is_function:
        sentence = f"static argument {place} went from {old.text} to {new.text}"
        if old.text == new.text:
            sentence = f"static argument {place} is a new function object: {new.text}"
        hint = advice.static_function(place)
    else:
        sentence = f"static argument {place} went from {old.text} to {new.text}"
        hint = advice.static(place)
    return Cause(kinds.STATIC_ARGUMENT, place, old.text, new.text, sentence, hint)


def _parameters(before: Values, after: Values) -> Iterator[Cause]:
    """Of an operation outside of jit, what is compiled in: told where its operands are the same."""
    for kind, place in after:
        if kind != "parameter" or (kind, place) not in before:
            continue
        old, new = before[kind, place], after[kind, place]
        if old == new:
            continue
        if hasattr(new, "sources"):  # the body of a loop
            yield new_function(old, new)
        else:
            sentence = f"parameter {place} went from {old.text} to {new.text}"
            hint = advice.parameter(place)
            yield Cause(kinds.STATIC_ARGUMENT, place, old.text, new.text, sentence, hint)
