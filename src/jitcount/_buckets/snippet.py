"""What ``jitcount plan`` prints: a plan for each ragged axis, and what to paste."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitcount._buckets.plan import BucketPlan, plan_buckets, powers_of_two
from jitcount._buckets.table import plan_table
from jitcount._explain.causes.cause import in_a_list
from jitcount._show.parts import Heading, Note, Part
from jitcount._show.text import plural, seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jitcount._buckets.ragged import RaggedAxes


def plan_parts(
    found: Sequence[RaggedAxes],
    k: int | None,
    multiple_of: int,
    steps: int | None,
    step_s: float | None,
) -> list[Part]:
    """The plans of all functions, one after the other."""
    functions: dict[tuple[str, str], list[RaggedAxes]] = {}
    for ragged in found:
        functions.setdefault((ragged.function, ragged.call_site), []).append(ragged)
    parts: list[Part] = []
    for each in functions.values():
        plans = [_plan(ragged, k, multiple_of, steps, step_s) for ragged in each]
        for ragged, plan in zip(each, plans, strict=True):
            named = in_a_list([f"axis {axis} of {place}" for place, axis in ragged.axes], ", ")
            counted = plural(len(ragged.lengths), "length")
            parts.append(
                Heading(
                    f"{ragged.function} at {ragged.call_site}: {named} had {counted}; "
                    f"its recompiles took {seconds(ragged.total_s)}"
                )
            )
            parts += plan_table(plan)
        parts.append(Heading("Paste where the function is defined; n is how much is no padding"))
        parts += [Note(line, is_whole=True) for line in snippet(each, plans)]
    parts.append(Note("each length counts once; jitcount.plan_buckets takes how often each comes"))
    return parts


def _plan(
    ragged: RaggedAxes,
    k: int | None,
    multiple_of: int,
    steps: int | None,
    step_s: float | None,
) -> BucketPlan:
    if k is None and steps is None and step_s is None:
        # How often each length comes is not known: no more sizes than powers of two would be.
        k = len(powers_of_two(np.asarray(ragged.lengths), multiple_of))
    return plan_buckets(
        ragged.lengths,
        k,
        multiple_of=multiple_of,
        steps=steps,
        compile_s=ragged.compile_s if step_s is not None else None,
        step_s=step_s,
    )


def snippet(each: Sequence[RaggedAxes], plans: Sequence[BucketPlan]) -> list[str]:
    """The lines that pad a function to its plans."""
    function = each[0].function
    if len(each) == 1:
        sizes, axes, length = str(list(plans[0].sizes)), _axes(each[0].by_place), '"n"'
    else:
        names = [f"n_{number}" for number in range(len(each))]
        sizes = _mapping({n: str(list(p.sizes)) for n, p in zip(names, plans, strict=True)})
        axes = _mapping({n: _axes(r.by_place) for n, r in zip(names, each, strict=True)})
        length = _mapping({name: f'"{name}"' for name in names})
    called = function if function.isidentifier() else "f"
    return [f"{called} = jitcount.bucketed({called}, {sizes}, axes={axes}, length={length})"]


def _axes(by_place: Mapping[str, object]) -> str:
    return _mapping({place: str(axes) for place, axes in by_place.items()})


def _mapping(texts: Mapping[str, str]) -> str:
    """A dict as Python source; a place that holds quotes is quoted by the others."""
    quoted = (f'"{name}"' if '"' not in name else repr(name) for name in texts)
    return "{" + ", ".join(f"{n}: {t}" for n, t in zip(quoted, texts.values(), strict=True)) + "}"
