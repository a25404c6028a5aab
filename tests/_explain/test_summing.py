"""What is one event to a reader is said once."""

from jitcount._explain.causes.arguments import (
    CallConvention,
    StaticFunction,
    StaticObject,
    StaticValue,
)
from jitcount._explain.causes.arrays import Dtype, Shape, Sharding, WeakType
from jitcount._explain.causes.functions import FirstCall, NewFunction
from jitcount._explain.causes.structure import NOT_GIVEN, Optional
from jitcount._explain.summary import advice_of, sentences, sentences_of_many
from jitcount._observe.array_type import ArrayType


def shorter(place: str, *rest: int, to: int = 7) -> Shape:
    """An array whose first axis went from 32 to another length."""
    return Shape(place, ArrayType("float32", (32, *rest)), ArrayType("float32", (to, *rest)))


def test_one_batch_that_is_shorter_in_three_arrays_is_one_event() -> None:
    causes = [shorter("batch['x']", 4), shorter("batch['y']"), shorter("batch['mask']")]
    assert sentences(causes) == ["axis 0 of batch: 32 → 7 (x, y, mask)"]
    assert advice_of(causes) == [
        (
            "pad axis 0 of batch['x'], batch['y'], batch['mask'] to a few lengths "
            "with jitcount.bucketed, and mask the padding"
        )
    ]


def test_places_in_several_arguments_are_listed() -> None:
    assert sentences([shorter("x", 4), shorter("y")]) == ["axis 0 of x, y: 32 → 7"]


def test_fields_and_numbers_are_written_as_short_as_they_can_be() -> None:
    causes = [shorter("state.mean"), shorter("state[0].square")]
    assert sentences(causes) == ["axis 0 of state: 32 → 7 (mean, [0].square)"]


def test_many_places_are_counted() -> None:
    causes = [Dtype(f"params['{name}']", "float32", "bfloat16") for name in "abcdef"]
    (sentence,) = sentences(causes)
    assert sentence == ("params['a'], params['b'], params['c'] and 3 more: float32 → bfloat16")


def test_other_changes_are_other_events() -> None:
    causes = [shorter("x"), shorter("y", to=8), Dtype("z", "float32", "int32")]
    assert sentences(causes) == [
        "axis 0 of x: 32 → 7",
        "axis 0 of y: 32 → 8",
        "z: float32 → int32",
    ]


def test_the_same_sentence_is_not_said_twice() -> None:
    body = NewFunction("train.py:3", "object 1", "object 2", "<lambda>", "lambda")
    condition = NewFunction("train.py:3", "object 1", "object 2", "<lambda>", "lambda")
    assert len(sentences([body, condition])) == 1


def test_the_lengths_that_an_axis_took_in_many_compiles_are_one_sentence() -> None:
    few = [[shorter("x", to=length)] for length in (7, 9)]
    assert sentences_of_many(few) == ["axis 0 of x: 7, 9, 32"]
    many = [[shorter("x", to=length), shorter("y", to=length)] for length in range(1, 31)]
    assert sentences_of_many(many) == ["axis 0 of x, y: 1 … 32, 31 of them"]


def test_the_shapes_that_an_array_took_in_several_axes_are_one_sentence() -> None:
    def square(before: int, after: int) -> Shape:
        old, new = (ArrayType("float32", (length, length)) for length in (before, after))
        return Shape("x", old, new)

    few = [[square(2, 3)], [square(3, 4)]]
    assert sentences_of_many(few) == ["x: float32[2,2], float32[3,3], float32[4,4]"]
    many = [[square(n, n + 1)] for n in range(1, 8)]
    assert sentences_of_many(many) == ["x: float32[1,1] … float32[8,8], 8 of them"]


def test_sentences_have_the_code_of_their_kind_where_it_is_asked_for() -> None:
    rate = StaticValue("lr", "0.1", "0.2")
    assert sentences_of_many([[shorter("x"), rate]], coded=True) == [
        "axis 0 of x: 32 → 7 [JC101]",
        "static argument lr: 0.1 → 0.2 [JC201]",
    ]
    assert sentences_of_many([[shorter("x")], [shorter("x", to=8), rate]], coded=True) == [
        "axis 0 of x: 7, 8, 32 [JC101]",
        "static argument lr: 0.1, 0.2 [JC201]",
    ]


def test_the_values_that_a_static_argument_took_are_one_sentence() -> None:
    many = [[StaticValue("n", str(n), str(n + 1))] for n in range(2)]
    assert sentences_of_many(many) == ["static argument n: 0, 1, 2"]


def test_what_cannot_be_summed_up_is_counted() -> None:
    assert sentences_of_many([[FirstCall("f")], [FirstCall("f")]]) == ["first call of f (2 times)"]


def test_what_happened_at_several_places_is_said_of_all_of_them() -> None:
    places = ("x", "y", "mask")
    sharded = [Sharding(place, "P('i')", "P()") for place in places]
    assert sentences(sharded) == ["x, y and mask were sharded as P() instead of P('i')"]
    assert advice_of(sharded) == [
        "set the sharding of x, y, mask once, with jax.device_put, before the first call"
    ]
    by_keyword = [CallConvention(place, by_keyword=True) for place in places[:2]]
    assert sentences(by_keyword) == ["x and y were passed by keyword instead of by position"]
    given = [Optional(place, NOT_GIVEN, "an array") for place in places]
    assert sentences(given) == ["x, y and mask were given, and were not before: an array"]
    functions = [StaticFunction(place, "f at a.py:3", "f at a.py:3") for place in places[:2]]
    assert sentences(functions) == [
        "static arguments x and y are new function objects: f at a.py:3"
    ]
    objects = [StaticObject(f"model.{place}", "a", "a", "Model") for place in places[:2]]
    assert sentences(objects) == ["model.x and model.y are other objects"]


def test_what_is_cast_is_cast_each() -> None:
    cast = [Dtype(place, "float32", "int32") for place in ("x", "y")]
    assert advice_of(cast) == [
        "cast them before the call: x.astype('float32'), y.astype('float32')"
    ]
    weak = [WeakType(place, "float32", is_weak=True, is_scalar=False) for place in ("x", "y")]
    assert advice_of(weak) == [
        "make them strongly typed before the first call: x.astype('float32'), y.astype('float32')"
    ]
