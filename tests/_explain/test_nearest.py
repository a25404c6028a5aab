"""The nearest of many programs, held against all of them: the history must not miss it."""

from hypothesis import given, settings
from hypothesis import strategies as st

from jitcount._explain.diff import differences, distance
from jitcount._explain.explain import causes_of
from jitcount._explain.history import History
from jitcount._observe.functions import Function
from jitcount._observe.program import Program, Value
from jitcount._observe.statics import describe_static
from jitcount._observe.surroundings import Options, Settings
from jitcount._observe.trees import Node
from jitcount._observe.values import Leaf

Row = tuple[int, ...]

few = st.integers(0, 2)
rows = st.tuples(few, few, few, few, few, few, few, few, st.booleans())


def program(row: Row) -> Program:
    """One program of a function, with something of every kind that can differ."""
    function, over, option, setting, static, structure, length, other, has_mask = row
    found: dict[str, Value] = {
        "n": describe_static(static),
        "params": Node("dict", tuple(f"['{key}']" for key in range(structure))),
        "x": Leaf((length,), "float32", is_weak=False),
        "y": Leaf((other,), "float32", is_weak=False),
    }
    if has_mask:
        found["mask"] = Leaf((length,), "bool", is_weak=False)
    return Program(
        group=("step",),
        name="step",
        transform="vmap",
        over=f"vmap over axis {over} of x",
        function=Function("step", "closure", "train.py:3", (), function + 1),
        options=Options({"donate_argnums": str(option)}),
        settings=Settings({"jax_enable_x64": str(setting)}),
        places=tuple(found),
        values=tuple(found.values()),
    )


@settings(max_examples=300, deadline=None)
@given(earlier=st.lists(rows, min_size=1, max_size=25), new=rows)
def test_the_causes_are_those_of_the_nearest_of_all_earlier_programs(
    earlier: list[Row], new: Row
) -> None:
    past = History()
    programs = [program(row) for row in earlier]
    for one in programs:
        past.add(one)
    later = program(new)
    neighbours = past.add(later)
    assert neighbours
    found = causes_of(later, neighbours)
    distances = [distance(differences(one, later), one, later) for one in programs]
    if all(map(any, distances)):
        chosen = [
            d
            for one, d in zip(programs, distances, strict=True)
            if differences(one, later) == list(found)
        ]
        assert min(distances) in chosen
    else:
        assert [cause.kind for cause in found] == ["caches-cleared"]


@settings(max_examples=100, deadline=None)
@given(earlier=st.lists(rows, min_size=1, max_size=25), new=rows)
def test_a_function_that_was_compiled_before_is_compared_with_itself(
    earlier: list[Row], new: Row
) -> None:
    past = History()
    for row in earlier:
        past.add(program(row))
    later = program(new)
    kinds = {cause.kind for cause in causes_of(later, past.add(later) or ())}
    was_compiled = any(row[0] == new[0] for row in earlier)
    assert ("new-function" in kinds) != was_compiled
