"""``rounding:7``, and what is no seed."""

from __future__ import annotations

import pytest

from jitcount._targets.installed import require_usable
from jitcount._targets.names import parse, seed_of


def test_a_seed_is_zero_where_none_is_given() -> None:
    assert (seed_of("rounding"), seed_of("rounding:0"), seed_of("rounding:7")) == (0, 0, 7)


def test_the_name_of_a_target_has_no_seed() -> None:
    assert seed_of("tpu:v5e") is None
    assert seed_of("roundings") is None
    assert seed_of(None) is None


@pytest.mark.parametrize("name", ["rounding:", "rounding:x", "rounding:-1", "rounding:1:2"])
def test_what_is_no_seed_is_refused(name: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 (the text is compared)
        require_usable(name)
    expected = f"{name!r}: a seed is a whole number from 0 on, as in 'rounding:7'"
    assert str(error.value) == expected


def test_nothing_is_needed_for_other_rounding() -> None:
    require_usable("rounding:3")


def test_it_is_no_target_to_compile_for() -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 (the same)
        parse("rounding:3")
    assert str(error.value) == (
        "'rounding:3' is no target to compile for, but a way to compute on this machine: "
        "--as-if rounding:3"
    )
