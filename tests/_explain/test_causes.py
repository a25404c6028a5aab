"""What holds for the causes as a whole; `test_messages` has the words of each."""

from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest

from jitcount._explain.causes import AnyCause, Cause, Kind
from jitcount._explain.causes.arguments import StaticFunction
from jitcount._explain.causes.arrays import Shape
from jitcount._explain.causes.cause import REDACTED, Precedence
from jitcount._explain.causes.functions import JitOption
from jitcount._explain.history import WEIGHTS
from jitcount._observe.array_type import ArrayType

CAUSES: tuple[type[Cause], ...] = get_args(AnyCause)
VALUE = "hunter-2-of-the-users"


def without_subclasses(kind: type[Cause]) -> Iterator[type[Cause]]:
    for below in kind.__subclasses__():
        yield from without_subclasses(below)
    if not kind.__subclasses__():
        yield kind


def test_a_ledger_can_hold_every_cause() -> None:
    assert set(CAUSES) == set(without_subclasses(Cause))


def test_every_kind_has_a_class() -> None:
    assert {cause.kind for cause in CAUSES} == set(Kind)


# --- What each class says of itself ---------------------------------------------------------------


def forgotten_by(cause: type[Cause]) -> set[str]:
    """What a class must say of itself, and does not."""
    return {
        name for name in ("kind", "precedence", "holds_user_values") if not hasattr(cause, name)
    }


def test_every_cause_says_how_far_it_reaches_and_whether_it_holds_values_of_the_users() -> None:
    assert {cause.__name__: forgotten_by(cause) for cause in CAUSES if forgotten_by(cause)} == {}


def test_a_cause_that_says_nothing_of_itself_is_found() -> None:
    assert forgotten_by(Cause) == {"kind", "precedence", "holds_user_values"}


def test_the_causes_of_one_kind_have_one_precedence() -> None:
    pairs = {(cause.kind, cause.precedence) for cause in CAUSES}
    assert len(pairs) == len(Kind)


def test_one_difference_weighs_more_than_many_of_the_levels_below() -> None:
    """The history finds the nearest by weights, and `distance` by counting: in one order."""
    assert [*WEIGHTS] == [level for level in Precedence if level != Precedence.NO_DIFFERENCE]
    weights = [*WEIGHTS.values()]
    assert weights == sorted(weights, reverse=True)
    below = WEIGHTS[Precedence.STATIC]
    assert 2**18 * below + WEIGHTS[Precedence.OPTIONS] < WEIGHTS[Precedence.TRANSFORM]
    assert 2**10 * WEIGHTS[Precedence.STRUCTURE] < WEIGHTS[Precedence.SETTINGS]
    assert sum(weights) < 2**63


# --- The user's values ----------------------------------------------------------------------------


def example(cause: type[Cause]) -> Cause:
    """One that has a secret wherever a text of the user's may stand."""
    chosen: dict[str, Any] = {
        "where": f"config['{VALUE}']",
        "before": VALUE,
        "after": f"another {VALUE}",
    }
    samples: dict[Any, Any] = {str: "text", bool: False, ArrayType: ArrayType("float32", (3,))}
    for field in msgspec.structs.fields(cause):
        if field.required and field.name not in chosen:
            chosen[field.name] = samples.get(field.type, (1, 2))
    known = {field.name for field in msgspec.structs.fields(cause)}
    return cause(**{name: value for name, value in chosen.items() if name in known})


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.__name__)
def test_a_cause_that_holds_values_of_the_users_can_be_shown_without_them(
    cause: type[Cause],
) -> None:
    whole = example(cause)
    if cause is JitOption:
        whole = msgspec.structs.replace(whole, where="compiler_options")
    hidden = whole.redacted()
    if not cause.holds_user_values:
        assert hidden is whole
        return
    assert VALUE not in f"{hidden} {hidden.advice} {hidden.brief()} {msgspec.to_builtins(hidden)}"
    assert (hidden.before, hidden.after) == (REDACTED, REDACTED)


def test_what_is_no_value_of_the_users_is_shown() -> None:
    option = JitOption("donate_argnums", "(0,)", "(1,)")
    assert option.redacted() is option
    line = "<lambda> at train.py:3"
    alike = StaticFunction("config['key'].f", line, line).redacted()
    assert (alike.where, alike.before, alike.after) == (f"config[{REDACTED}]", line, line)


def test_a_dtype_that_changes_too_is_not_said_with_the_shape() -> None:
    old, new = ArrayType("float32", (14,)), ArrayType("int32", ())
    assert Shape("x", old, new).changed == ("shape of x", "[14] → []")
    assert Shape("x", old, ArrayType("float32", ())).changed == ("x", "float32[14] → float32[]")
