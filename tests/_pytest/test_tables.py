"""What a run compiled again, and what a persistent cache would have served."""

from msgspec.structs import replace

from jitcount._pytest.tables import duplicate_compiles
from jitcount._show.terminal import render
from tests.expected import expect
from tests.helpers import STEP_COMPILED

ONE = replace(STEP_COMPILED, fingerprint="c0ffee", trace_s=0.05, compile_s=0.25)
SLOW = replace(ONE, fingerprint="decaf", compile_s=2.0)


def test_the_same_program_again_is_summed_up_and_the_first_to_come_is_not() -> None:
    later = replace(ONE, compile_s=0.5, started_at=9.0)
    expect(
        render(duplicate_compiles([later, ONE, SLOW, SLOW])),
        "2 of 4 compiles are of a program that this run had compiled before: 2.6 s\n"
        "  a persistent cache would have served 2.5 s of it: JAX_COMPILATION_CACHE_DIR=FOLDER "
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0\n"
        "  without the second, what compiles in less than 1 s is not kept: 2 s of it",
    )


def test_nothing_is_said_where_nothing_came_again() -> None:
    unknown = replace(ONE, fingerprint="")
    from_disk = replace(ONE, from_disk=True)
    elsewhere = replace(ONE, platform="tpu")
    assert duplicate_compiles([ONE, SLOW, unknown, unknown, from_disk, elsewhere]) == []
