import itertools

from msgspec.structs import replace

from jitcount._explain.causes import AnyCause
from jitcount._explain.causes.arguments import StaticValue
from jitcount._explain.causes.arrays import Dtype, Shape
from jitcount._explain.causes.cause import Kind
from jitcount._explain.causes.functions import FirstCall, Unknown
from jitcount._explain.compile import Compile
from jitcount._explain.fixes import fixes
from jitcount._observe.array_type import ArrayType
from tests.helpers import STEP_COMPILED

BASE = replace(STEP_COMPILED, compile_s=1.0)


def compiled(*causes: AnyCause, **changes: object) -> Compile:
    return replace(BASE, causes=causes, **changes)


def shape(before: tuple[int, ...], after: tuple[int, ...]) -> Shape:
    return Shape("x", ArrayType("float32", before), ArrayType("float32", after))


FIRST = FirstCall("step")


def test_lengths_of_one_axis_are_summed_up() -> None:
    lengths = [20, 934, 31, 57]
    shapes = [(length, 4) for length in lengths]
    log = [compiled(shape(a, b)) for a, b in itertools.pairwise(shapes)]
    (found,) = fixes([compiled(FIRST), *log])
    assert (found.what, found.call_site) == ("step", "train.py:42 in main")
    assert (found.count, found.seconds) == (3, 3.0)
    assert found.changes == ("axis 0 of x: 20, 31, 57, 934",)
    assert found.advice == "pad axis 0 of x to one length, or to a few (buckets)"


def test_shapes_that_change_in_two_axes_are_counted() -> None:
    again = compiled(shape((2, 3), (4, 5)))
    (found,) = fixes([again, again])
    assert found.changes == ("x: float32[2,3] → float32[4,5] (2 times)",)


def test_values_of_a_static_argument_are_summed_up() -> None:
    def static(before: int, after: int) -> StaticValue:
        return StaticValue("n", str(before), str(after))

    (found,) = fixes([compiled(static(1, 2)), compiled(static(2, 3))])
    assert found.changes == ("static argument n: 1, 2, 3",)


def test_the_costliest_comes_first() -> None:
    cause = shape((3,), (4,))
    found = fixes(
        [compiled(cause), compiled(cause, function="other", compile_s=9.0), compiled(cause)]
    )
    assert [(h.what, h.count, h.seconds) for h in found] == [
        ("other", 1, 9.0),
        ("step", 2, 2.0),
    ]


def test_first_calls_and_disk_hits_are_no_recompiles() -> None:
    cause = shape((3,), (4,))
    assert fixes([compiled(FIRST), compiled(cause, from_disk=True)]) == []


def test_the_advice_is_for_what_changed_most_often() -> None:
    dtype = Dtype("y", "float32", "int32")
    shapes = shape((3,), (4,))
    (found,) = fixes([compiled(shapes, dtype), compiled(dtype)])
    assert found.advice == dtype.advice
    assert found.changes[0] == "y: float32 → int32 (2 times)"


def test_operations_outside_of_jit_are_summed_up_by_line() -> None:
    operations = [compiled(FirstCall(name), function=name, eager=True) for name in "abcde"]
    (found,) = fixes(operations)
    assert (found.what, found.count, found.seconds) == (
        "5 operations were compiled one by one",
        5,
        5.0,
    )
    assert found.changes == ()
    assert found.advice == "call it under jax.jit"
    assert fixes(operations[:4]) == []


def test_an_operation_that_is_compiled_again_is_worth_a_look() -> None:
    (found,) = fixes([compiled(FIRST, eager=True), compiled(shape((3,), (4,)), eager=True)])
    assert found.what == "2 operations were compiled one by one"
    assert found.changes == ("axis 0 of x: 3 → 4",)


def test_what_happened_is_counted_and_not_the_last_of_it() -> None:
    to_scalar, to_table = shape((3,), ()), shape((3,), (3, 3))
    (found,) = fixes([compiled(to_scalar), compiled(to_table), compiled(to_table)])
    assert found.changes == (
        "x: float32[3] → float32[3,3] (2 times)",
        "x: float32[3] → float32[]",
    )


def test_a_fix_has_the_code_of_its_kind() -> None:
    (found,) = fixes([compiled(shape((3,), (4,)))])
    assert (found.code, found.title, found.compiles) == ("JC101", "shape", (found.compiles[0],))


def test_without_advice_there_is_no_fix() -> None:
    assert fixes([compiled(Unknown("", "nothing that can be seen of the call differs"))]) == []


def test_each_kind_has_a_code_of_its_own() -> None:
    assert len({kind.code for kind in Kind}) == len(Kind)
    static = Kind.STATIC_ARGUMENT
    assert (static.code, static.in_words) == ("JC201", "static argument")
