"""Stacks that JAX has written are completed by those of the program's equations."""

from jitcount._hlo.locations import DeepStacks, Frame, SourceTables
from jitcount._observe.call_site import UNKNOWN_SITE


def frame(line: int) -> Frame:
    return "/me/train.py", line, "f"


def test_frames_that_did_not_call_each_other_come_from_another_program() -> None:
    deep = DeepStacks()
    deep.add((frame(4), frame(9)))
    deep.add((frame(7), frame(9)))
    called, calls = frame(99), frame(1)  # inside of JAX's own function; and what called the program
    assert deep.whole((called, frame(4), frame(9), calls)) == (frame(4), frame(9), calls)
    assert deep.whole((frame(7), frame(4), frame(9), calls)) == (frame(4), frame(9), calls)


def test_outer_frames_that_a_function_was_traced_under_first_are_passed_over() -> None:
    """Up to 0.9 JAX keeps them with the function, which is called from elsewhere now."""
    deep = DeepStacks()
    deep.add((frame(3), frame(9), frame(20)))
    found = deep.whole((frame(3), frame(7), frame(20), frame(9), frame(20)))
    assert found == (frame(3), frame(9), frame(20))


def test_a_stack_of_which_nothing_is_known_stays_as_it_is() -> None:
    stack = (frame(3), frame(7))
    assert DeepStacks().whole(stack) == stack


def test_of_one_line_alone_it_is_known_whether_it_is_the_programs() -> None:
    """Before 0.8 an instruction has a line, and no stack."""
    deep = DeepStacks()
    deep.add((frame(3), frame(7)))
    tables = SourceTables({}, deep)
    lines = {n: {"source_file": '"/me/train.py"', "source_line": str(n)} for n in (3, 99)}
    assert (tables.site_of(lines[3]).line, tables.site_of(lines[99])) == (3, UNKNOWN_SITE)
    assert SourceTables({}).site_of(lines[99]).line == 99
