import itertools

from msgspec.structs import replace

from jitcount.explain.causes import AnyCause
from jitcount.explain.causes.arguments import StaticValue
from jitcount.explain.causes.arrays import Dtype, Shape
from jitcount.explain.causes.functions import FirstCall
from jitcount.explain.compile import Compile
from jitcount.explain.hotspots import hotspots
from jitcount.observe.array_type import ArrayType
from jitcount.observe.call_site import CallSite

BASE = Compile(
    function="step",
    signature=(),
    platform="cpu",
    call_site=CallSite("train.py:42 in main"),
    eager=False,
    from_disk=False,
    trace_s=0.0,
    lower_s=0.0,
    compile_s=1.0,
    causes=(),
)


def compiled(*causes: AnyCause, **changes: object) -> Compile:
    return replace(BASE, causes=causes, **changes)


def shape(before: tuple[int, ...], after: tuple[int, ...]) -> Shape:
    return Shape("x", ArrayType("float32", before), ArrayType("float32", after))


FIRST = FirstCall("step")


def test_lengths_of_one_axis_are_summed_up() -> None:
    lengths = [20, 934, 31, 57]
    shapes = [(length, 4) for length in lengths]
    log = [compiled(shape(a, b)) for a, b in itertools.pairwise(shapes)]
    (found,) = hotspots([compiled(FIRST), *log])
    assert (found.function, found.call_site) == ("step", "train.py:42 in main")
    assert (found.count, found.seconds) == (3, 3.0)
    assert found.causes == ("axis 0 of x took 4 lengths between 20 and 934",)
    assert found.advice == "pad axis 0 of x to one length, or to a few (buckets)"


def test_shapes_that_change_in_two_axes_are_counted() -> None:
    again = compiled(shape((2, 3), (4, 5)))
    (found,) = hotspots([again, again])
    assert found.causes == ("axes 0, 1 of x changed: float32[2,3] became float32[4,5] (2 times)",)


def test_values_of_a_static_argument_are_summed_up() -> None:
    def static(before: int, after: int) -> StaticValue:
        return StaticValue("n", str(before), str(after))

    (found,) = hotspots([compiled(static(1, 2)), compiled(static(2, 3))])
    assert found.causes == ("static argument n took 3 values",)


def test_the_costliest_comes_first() -> None:
    cause = shape((3,), (4,))
    found = hotspots(
        [compiled(cause), compiled(cause, function="other", compile_s=9.0), compiled(cause)]
    )
    assert [(h.function, h.count, h.seconds) for h in found] == [
        ("other", 1, 9.0),
        ("step", 2, 2.0),
    ]


def test_first_calls_and_disk_hits_are_no_recompiles() -> None:
    cause = shape((3,), (4,))
    assert hotspots([compiled(FIRST), compiled(cause, from_disk=True)]) == []


def test_the_advice_is_for_what_changed_most_often() -> None:
    dtype = Dtype("y", "float32", "int32")
    shapes = shape((3,), (4,))
    (found,) = hotspots([compiled(shapes, dtype), compiled(dtype)])
    assert found.advice == dtype.advice
    assert found.causes[0] == "y went from float32 to int32 (2 times)"
