"""The programs that are drawn: the same for the same seed, exact, and nothing undefined."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.helpers import ROOT
from tools.hunt import operations
from tools.hunt.grammar import PROPOSALS, random_program
from tools.hunt.program import OPERATIONS, Program, Step, bodies, evaluate, pruned, source
from tools.hunt.values import FLOATS, LEFT_OUT, Spec, bounds, wrapped
from tools.hunt.worker import Job, agree, run_job

assert operations.__all__  # they fill the table


def steps_of(program: Program) -> Iterator[tuple[Step, list[Spec]]]:
    """All steps, with what is known of their operands, also in the bodies of loops."""
    for step in program.steps:
        yield step, [program.spec(value) for value in step.operands]
        for body in bodies(step):
            yield from steps_of(body)


def all_values(program: Program) -> list[np.ndarray]:
    count = len(program.inputs) + len(program.steps)
    return evaluate(replace(program, outputs=tuple(range(count))))


def test_the_same_seed_draws_the_same_program() -> None:
    texts = [source(random_program(seed)) for seed in range(50)]
    assert texts == [source(random_program(seed)) for seed in range(50)]
    assert len(set(texts)) > 40


@pytest.mark.thorough
def test_every_operation_is_drawn() -> None:
    drawn = {name for seed in range(3000) for name in random_program(seed).operations()}
    assert drawn == set(OPERATIONS)
    assert len(PROPOSALS) > 20


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_every_value_is_within_its_bound_and_its_type_holds_it(first: int) -> None:
    for seed in range(first, first + 50):
        program = random_program(seed)
        for value, found in enumerate(all_values(program)):
            spec = program.spec(value)
            low, high = bounds(spec.dtype)
            assert found.shape == spec.shape
            assert np.abs(found).max(initial=0) <= spec.size
            assert spec.negative or found.min(initial=0) >= 0
            assert low <= found.min(initial=0) <= found.max(initial=0) <= high, (seed, spec)


def test_no_sum_of_floats_can_leave_the_range_where_they_are_exact() -> None:
    for seed in range(1000):
        for step, operands in steps_of(random_program(seed)):
            for spec in (step.spec, *operands):
                assert not spec.is_float or spec.size <= FLOATS[spec.dtype], (seed, step)


def test_nothing_undefined_is_drawn() -> None:
    for seed in range(600):
        for step, operands in steps_of(random_program(seed)):
            if step.operation.startswith("shift"):
                assert 0 <= step["by"] < np.iinfo(step.spec.dtype).bits
            if step.operation in {"rem", "div"}:
                assert 0 < step["divisor"] <= bounds(step.spec.dtype)[1]
            if step.operation == "div":
                assert step.spec.is_integer
            if step.operation == "convert" and operands[0].is_float and step.spec.is_integer:
                low, high = bounds(step.spec.dtype)
                assert operands[0].size <= high
                assert low < 0 or not operands[0].negative
            if step.operation == "sort_with":
                assert "is_stable=True" in OPERATIONS["sort_with"].source(step, "x", "y")
            if step.operation == "scatter" and step["way"] == "set":
                assert operands[2].shape == ()  # so that each place is set to the same


def test_the_page_says_what_is_left_out_and_why() -> None:
    page = (ROOT / "docs" / "hunt.md").read_text()
    assert [row for row in LEFT_OUT.items() if f"| {row[0]} | {row[1]} |" not in page] == []


def test_integers_wrap_around_as_their_types_do() -> None:
    assert wrapped([300, -1], "uint8").tolist() == [44, 255]
    assert wrapped([200, -129], "int8").tolist() == [-56, 127]
    assert wrapped([1 << 24], "float32").tolist() == [1 << 24]


def test_pruning_keeps_the_results() -> None:
    for seed in range(60):
        program = random_program(seed)
        less = pruned(replace(program, outputs=program.outputs[:1]))
        assert np.array_equal(evaluate(less)[0], evaluate(program)[0])
        assert less.length <= program.length


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(0, 100, 20))
def test_numpy_and_jax_agree_operation_by_operation(first: int) -> None:
    for seed in range(first, first + 20):
        program = random_program(seed)
        arguments = tuple(one.source() for one in program.arguments)
        found = run_job(Job(source(program), arguments, compiled=False))
        assert agree(found, evaluate(program)), (seed, source(program))
