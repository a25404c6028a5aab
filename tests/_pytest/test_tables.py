"""What a run compiled, what again, and what a persistent cache would have served."""

from msgspec.structs import replace

from jitcount._explain.causes.arrays import Shape
from jitcount._observe.array_type import ArrayType
from jitcount._observe.call_site import CallSite
from jitcount._pytest.tables import Suite, duplicate_compiles, suite_report
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


def test_what_workers_compile_at_the_same_time_is_summed_up_everywhere() -> None:
    longer = Shape("x", ArrayType("float32", (3,)), ArrayType("float32", (4,)))
    tests = {
        f"test_{name}.py::test": [
            replace(
                STEP_COMPILED,
                compile_s=1.0,
                started_at=100.0,
                causes=(longer,),
                function=f"step_{name}",
                call_site=CallSite(f"test_{name}.py:3 in test"),
            )
        ]
        for name in "ab"
    }
    report = render(suite_report(Suite(tests=tests, outside={}, run_s=9.0, workers=2), 10), 80)
    expect(
        report.partition("The most")[0],
        "2 compiles took 2 s in 2 workers, and the run 9 s; 2 of 2 tests compile\n"
        "\n"
        "What to fix, by what it saves over the whole suite\n"
        "  1. step_a at test_a.py:3 in test: 1 recompile, 1 s [JC101]\n"
        "    axis 0 of x: 3 → 4\n"
        "    → pad axis 0 of x to a few lengths with jitcount.bucketed, and mask the\n"
        "      padding\n"
        "    in test_a.py::test (1 s)\n"
        "  2. step_b at test_b.py:3 in test: 1 recompile, 1 s [JC101]\n"
        "    axis 0 of x: 3 → 4\n"
        "    → pad axis 0 of x to a few lengths with jitcount.bucketed, and mask the\n"
        "      padding\n"
        "    in test_b.py::test (1 s)\n"
        "\n",
    )
