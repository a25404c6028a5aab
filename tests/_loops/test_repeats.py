"""Tandem repeats, on letters."""

from __future__ import annotations

from jitcount._loops.repeats import OUTSIDE, Input, Step, find_repeats


def chain(text: str) -> list[Step]:
    """Each step takes what the one before has made."""
    return [
        Step(ord(letter), (Input(at - 1 if at else OUTSIDE, 0),)) for at, letter in enumerate(text)
    ]


def found_in(text: str) -> list[tuple[int, int, int]]:
    repeats = find_repeats(chain(text), lambda _: True)
    return [(each.start, each.period, each.copies) for each in repeats]


def test_copies_in_a_row() -> None:
    assert found_in("xyabcabcabcz") == [(2, 3, 3)]


def test_the_shortest_period() -> None:
    assert found_in("abababab") == [(0, 2, 4)]


def test_a_loop_in_a_loop() -> None:
    assert found_in("xbbbcxbbbcxbbbc") == [(0, 5, 3), (6, 1, 3)]


def test_one_after_the_other() -> None:
    assert found_in("ababab" + "cdcdcdcd") == [(0, 2, 3), (6, 2, 4)]


def test_a_last_copy_that_is_cut_short_is_none() -> None:
    assert found_in("abcabcab")[0][1:] == (3, 2)


def test_nothing_repeats() -> None:
    assert found_in("abcdefg") == []
    assert found_in("") == []


def test_data_must_go_as_through_a_loop() -> None:
    first_again = chain("aaaaaa")
    first_again[1:] = [Step(ord("a"), (Input(0, 0),))] * 5
    repeats = find_repeats(first_again, lambda _: True)
    assert [(each.start, each.copies) for each in repeats] == [(0, 2), (2, 4)]


def test_what_is_not_accepted_hides_nothing() -> None:
    repeats = find_repeats(chain("aabcabcabc"), lambda repeat: repeat.period > 1)
    assert [(each.start, each.period, each.copies) for each in repeats] == [(1, 3, 3)]
