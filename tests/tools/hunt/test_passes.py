"""Which pass did it, found by leaving passes out."""

import re
from pathlib import Path

import pytest

from tools.hunt.passes import DISABLE, Bisection, passes_in

PROGRAM = Path("program.py")


class FakeCompiler:
    """Runs a program that some passes make wrong, and that cannot do without another."""

    def __init__(self, passes: list[str], guilty: str = "", needed: str = "") -> None:
        self.passes, self.guilty, self.needed = passes, guilty, needed
        self.runs: list[str] = []

    def __call__(self, path: Path, flags: str) -> bool:
        assert path == PROGRAM
        self.runs.append(flags)
        if dump := re.search(r"--xla_dump_to=(\S+)", flags):
            for number, name in enumerate(self.passes):
                file = f"module_0007.jit_f.{number:04}.simplification.after_{name}.before_dce.txt"
                (Path(dump[1]) / file).touch()
            return False
        out = flags.removeprefix(DISABLE).split(",") if flags.startswith(DISABLE) else []
        return self.guilty in out and self.needed not in out


PASSES = [f"pass-{number}" for number in range(20)]


@pytest.mark.parametrize("guilty", PASSES)
def test_the_guilty_pass_is_named(guilty: str) -> None:
    compiler = FakeCompiler(PASSES, guilty)
    assert Bisection(PROGRAM, compiler).cures() == (DISABLE + guilty,)
    assert len(compiler.runs) <= 11  # of twenty, and the one that lists them


@pytest.mark.parametrize("guilty", PASSES[1:])
def test_a_pass_that_must_not_be_left_out_does_not_hide_the_guilty_one(guilty: str) -> None:
    compiler = FakeCompiler(PASSES, guilty, needed=PASSES[0])
    assert Bisection(PROGRAM, compiler).cures() == (DISABLE + guilty,)


def test_where_no_pass_did_it_none_is_named() -> None:
    assert Bisection(PROGRAM, FakeCompiler(PASSES, "another")).cures() == ()


def test_flags_of_reports_are_tried_too() -> None:
    compiler = FakeCompiler(PASSES, "pass-3")
    first = ("--xla_other", f"{DISABLE}pass-3,pass-4")
    assert Bisection(PROGRAM, compiler).cures(first) == (first[1], f"{DISABLE}pass-3")


def test_it_gives_up_when_the_time_is_over() -> None:
    compiler = FakeCompiler(PASSES, "pass-3")
    assert Bisection(PROGRAM, compiler, until=0).cures(["--xla_other"]) == ()
    assert [flags for flags in compiler.runs if DISABLE in flags] == []


def test_only_passes_that_changed_the_program_are_read_from_the_names_of_files() -> None:
    assert passes_in(
        [
            "module_0001.jit_g.0001.simplification.after_other.before_dce.txt",
            "module_0002.jit_f.0001.simplification.after_pipeline-start.before_algsimp.txt",
            "module_0002.jit_f.0002.simplification.after_algsimp.before_dce.txt",
            "module_0002.jit_f.0003.dots.after_dot-library-rewriter.before_pipeline-end.txt",
            "module_0002.jit_f.0004.simplification.after_algsimp.before_dce.txt",
            "module_0002.jit_f.cpu_after_optimizations.txt",
        ]
    ) == ["algsimp", "dot-library-rewriter"]
