"""Two runs side by side: each kind of change is made, and must be named with its line."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from msgspec.structs import replace

import jitcount
from jitcount._cli.main import main
from jitcount._explain.causes.arrays import Shape
from jitcount._explain.compile import Compile
from jitcount._ledger.compare import compare_ledgers
from jitcount._ledger.comparison import Comparison
from jitcount._ledger.environment import environment
from jitcount._ledger.ledger import CaseEntry, Ledger
from jitcount._ledger.sites import side_by_side, sites_of
from jitcount._observe.array_type import ArrayType
from jitcount._observe.call_site import CallSite
from jitcount._show.comparison_table import comparison_tables
from jitcount._show.terminal import render
from jitcount._targets.result import OnTarget
from tests.expected import expect
from tests.helpers import STEP_COMPILED

HERE = replace(environment(), as_if="")


def at(line: int, function: str = "step", length: int = 3, **fields: Any) -> Compile:
    site = CallSite(f"train.py:{line} in main", "/a/train.py", line, "main")
    types = [ArrayType("float32", (n,)) for n in (3, length)]
    causes = () if length == 3 else (Shape(where="x", old=types[0], new=types[1]),)
    given = {"call_site": site, "signature": (str(types[1]),), "causes": causes, "operations": 7}
    return replace(STEP_COMPILED, function=function, **given | fields)


def outside(line: int, *functions: str) -> list[Compile]:
    return [at(line, function, eager=True, operations=1) for function in functions]


def run(*compiles: Compile, **cases: list[Compile]) -> Ledger:
    every = cases or {"train.py": list(compiles)}
    entries = {name: CaseEntry(compiles=tuple(found)) for name, found in every.items()}
    return Ledger(environment=HERE, cases=entries)


def of(before: Ledger, after: Ledger) -> Comparison:
    return compare_ledgers({"before": before, "after": after})


def lines(compared: Comparison) -> list[str]:
    """What is shown, without the machine."""
    shown = render(comparison_tables(compared), 1000).splitlines()
    assert shown[-1].startswith("all on ")
    return shown[:-1]


def test_a_run_does_not_differ_from_itself_but_for_its_seconds() -> None:
    one, other = run(at(4)), run(at(4, compile_s=0.25))
    expect(
        lines(of(one, other)),
        [
            "0 differences; before: 1 compile in 100 ms, after: 1 compile in 250 ms",
        ],
    )
    assert of(one, other).differences == []


def test_a_program_that_grew_is_named_from_what_to_what() -> None:
    grown = at(4, operations=8449, signature=("float32[3]", "float32[3]"))
    expect(
        lines(of(run(at(4, operations=2113)), run(grown))),
        [
            "1 difference; before: 1 compile in 100 ms, after: 1 compile in 100 ms",
            "  step: 2,113 → 8,449 operations at train.py:4 in main",
            "  → jitcount run --profile --ledger FILE keeps the line inside of it",
        ],
    )


def test_more_compiles_have_their_causes_and_fewer_too() -> None:
    one, more = run(at(4)), run(at(4), at(4, length=4), at(4, length=5))
    expect(
        lines(of(one, more)),
        [
            "1 difference; before: 1 compile in 100 ms, after: 3 compiles in 300 ms",
            "  step: 1 → 3 compiles at train.py:4 in main",
            "    axis 0 of x: 3, 4, 5",
        ],
    )
    expect(
        lines(of(more, one)),
        [
            "1 difference; before: 3 compiles in 300 ms, after: 1 compile in 100 ms",
            "  step: 3 → 1 compiles at train.py:4 in main",
            "    no more: axis 0 of x: 3, 4, 5",
        ],
    )


def test_what_appeared_and_what_is_gone() -> None:
    one, other = run(at(4), at(5, "evaluate")), run(at(4), *outside(9, "add", "add", "iota"))
    expect(
        lines(of(one, other)),
        [
            "2 differences; before: 2 compiles in 200 ms, after: 4 compiles in 400 ms",
            "  evaluate is gone: 1 compile at train.py:5 in main",
            "  operations outside of jit appeared: 3 compiles at train.py:9 in main",
            "    add ×2, iota",
        ],
    )
    expect(
        lines(of(other, one)),
        [
            "2 differences; before: 4 compiles in 400 ms, after: 2 compiles in 200 ms",
            "  evaluate appeared: 1 compile at train.py:5 in main",
            "  operations outside of jit are gone: 3 compiles at train.py:9 in main",
            "    add ×2, iota",
        ],
    )


def test_lines_that_moved_are_the_same_lines() -> None:
    one = [at(4), at(6), at(6, length=4), *outside(9, "add"), *outside(11, "add", "iota")]
    moved = [at(6), at(8), at(8, length=4), *outside(11, "add"), *outside(13, "add", "iota")]
    assert of(run(*one), run(*moved)).program_changes == []


def test_a_new_line_above_is_told_from_those_that_it_moved() -> None:
    one = [*outside(4, "add", "iota"), *outside(6, "mul")]
    new = [*outside(4, "exp"), *outside(6, "add", "iota"), *outside(8, "mul")]
    expect(
        lines(of(run(*one), run(*new))),
        [
            "1 difference; before: 3 compiles in 300 ms, after: 4 compiles in 400 ms",
            "  operations outside of jit appeared: 1 compile at train.py:4 in main",
            "    exp",
        ],
    )


def test_the_same_lines_are_compared_by_line_whatever_they_compile() -> None:
    one = [at(4), at(4, length=4), at(6)]
    swapped = [at(4), at(6), at(6, length=4)]
    expect(
        lines(of(run(*one), run(*swapped))),
        [
            "2 differences; before: 3 compiles in 300 ms, after: 3 compiles in 300 ms",
            "  step: 2 → 1 compiles at train.py:4 in main",
            "    no more: axis 0 of x: 3 → 4",
            "  step: 1 → 2 compiles at train.py:6 in main",
            "    axis 0 of x: 3 → 4",
        ],
    )


def test_files_are_the_same_where_the_run_began_elsewhere() -> None:
    there = CallSite("src/train.py:4 in main", "/b/src/train.py", 4, "main")
    pairs, gone, new = side_by_side(sites_of([at(4)]), sites_of([at(4, call_site=there)]))
    assert (len(pairs), gone, new) == (1, [], [])
    other = CallSite("model.py:4 in main", "/a/model.py", 4, "main")
    pairs, gone, new = side_by_side(sites_of([at(4)]), sites_of([at(4, call_site=other)]))
    assert (len(pairs), len(gone), len(new)) == (0, 1, 1)


def on(error: str | None = None, temporary: int = 0) -> dict[str, OnTarget]:
    return {"tpu:v5e": OnTarget(target="tpu:v5e", error=error, temporary_bytes=temporary)}


HBM = "RESOURCE_EXHAUSTED: Ran out of memory on HBM: 40.25G exceeds available HBM 15.75G\nand more"


def test_what_a_target_refuses_now_is_a_difference_and_so_is_what_it_takes_again() -> None:
    good, bad = run(at(4, on=on())), run(at(4, on=on(HBM)))
    expect(
        lines(of(good, bad)),
        [
            "1 difference; before: 1 compile in 100 ms, after: 1 compile in 100 ms",
            (
                "  step: now refused by tpu:v5e, at train.py:4 in main: RESOURCE_EXHAUSTED: Ran "
                "out of memory on HBM: 40.25G exceeds available HBM 15.75G"
            ),
        ],
    )
    expect(
        lines(of(bad, good)),
        [
            "1 difference; before: 1 compile in 100 ms, after: 1 compile in 100 ms",
            "  step: no longer refused by tpu:v5e, at train.py:4 in main",
        ],
    )
    expect(
        lines(of(run(), bad)),
        [
            "1 difference; before: 0 compiles in 0, after: 1 compile in 100 ms",
            "  step appeared: 1 compile at train.py:4 in main",
            "tpu:v5e is not compared: after alone was compiled for it",
        ],
    )
    assert of(bad, bad).differences == []


def test_what_was_not_asked_before_is_not_compared() -> None:
    expect(
        lines(of(run(at(4)), run(at(4, on=on(HBM))))),
        [
            "0 differences; before: 1 compile in 100 ms, after: 1 compile in 100 ms",
            "tpu:v5e is not compared: after alone was compiled for it",
        ],
    )


def test_memory_and_arguments_are_shown_and_are_no_difference() -> None:
    one, other = run(at(4, on=on(None, 4096))), run(at(4, length=5, on=on(None, 8192)))
    expect(
        lines(of(one, other)),
        [
            "0 differences; before: 1 compile in 100 ms, after: 1 compile in 100 ms",
            "",
            "Also changed, and no difference",
            "  step: 4 KiB → 8 KiB on tpu:v5e, at train.py:4 in main",
            "  step: float32[3] → float32[5] at train.py:4 in main",
            "  step: compiled for another reason at train.py:4 in main",
            "    axis 0 of x: 3 → 5",
        ],
    )
    assert of(one, other).differences == []
    assert of(one, run(at(4, on=on(None, 4097)))).program_changes == []


def test_what_the_cache_served_is_no_difference() -> None:
    expect(
        lines(of(run(at(4)), run(at(4, from_disk=True)))),
        [
            (
                "0 differences; before: 1 compile in 100 ms, after: 0 compiles and 1 disk hit in "
                "100 ms"
            ),
            "",
            "Also changed, and no difference",
            "  step: 0 → 1 from the persistent cache at train.py:4 in main",
        ],
    )


def test_what_another_test_compiles_first_is_no_difference() -> None:
    one = run(test_a=[at(4)], test_b=[])
    other = run(test_a=[], test_b=[at(4)])
    expect(
        lines(of(one, other)),
        [
            "0 differences; before: 1 compile in 100 ms, after: 1 compile in 100 ms",
            "",
            "Also changed, and no difference",
            "  step: 1 compile in another test than before, at train.py:4 in main",
        ],
    )


def test_the_same_in_many_tests_is_said_once() -> None:
    one = run(**{f"a.py::test_{n}": [at(4)] for n in range(3)})
    grown = run(**{f"a.py::test_{n}": [at(4, operations=9)] for n in range(3)})
    expect(
        lines(of(one, grown)),
        [
            "3 differences; before: 3 compiles in 300 ms, after: 3 compiles in 300 ms",
            "  step: 7 → 9 operations at train.py:4 in main (in a.py::test_0 and 2 more)",
            "  → jitcount run --profile --ledger FILE keeps the line inside of it",
        ],
    )
    assert len(of(one, grown).differences) == 3
    also = run(**{f"a.py::test_{n}": [at(4, operations=9 if n else 7)] for n in range(2)})
    expect(
        lines(of(run(**{f"a.py::test_{n}": [at(4)] for n in range(2)}), also))[1:2],
        [
            "  step: 7 → 9 operations at train.py:4 in main (in a.py::test_1)",
        ],
    )


def test_of_very_many_changes_the_first_are_shown() -> None:
    other = run(*(at(n, f"f{n}") for n in range(1, 15)))
    expect(
        lines(of(run(), other))[-2:],
        [
            "  f10 appeared: 1 compile at train.py:10 in main",
            "  and 4 more of these",
        ],
    )


def test_other_releases_lower_to_other_operations() -> None:
    other = replace(run(at(4, operations=9)), environment=replace(HERE, jax="0.1", platform="cpu"))
    one = replace(run(at(4)), environment=replace(HERE, jax="0.2", platform="cpu"))
    compared = of(one, other)
    expect(
        list(compared.notes),
        [
            (
                "operations are not compared: before is of jax 0.2 on cpu, after of jax 0.1 on "
                "cpu, which lower to other ones"
            ),
        ],
    )
    assert compared.program_changes == []
    assert "ledger" in render(comparison_tables(compared), 1000)


def test_without_jit_nothing_is_compared() -> None:
    eager = replace(HERE, config=HERE.config | {"jax_disable_jit": "True"})
    compared = of(run(at(4)), replace(run(), environment=eager))
    expect(
        list(compared.notes),
        [
            "after is not compared: one of the two is without jit",
        ],
    )
    assert compared.differences == []


def test_each_ledger_is_compared_with_the_one_before() -> None:
    compared = compare_ledgers({"a": run(at(4)), "b": run(at(4), at(5)), "c": run(at(4), at(5))})
    expect(
        lines(compared),
        [
            (
                "1 difference; a: 1 compile in 100 ms, b: 2 compiles in 200 ms, c: 2 compiles in "
                "200 ms"
            ),
            "",
            "b against a",
            "  step appeared: 1 compile at train.py:5 in main",
        ],
    )


def test_plain_data_has_all_of_it() -> None:
    found = json.loads(json.dumps(of(run(at(4)), run(at(4, operations=9))).to_dict()))
    assert found["totals"]["after"] == {"compiles": 1, "disk_hits": 0, "seconds": 0.1}
    assert [change["kind"] for change in found["program_changes"]] == ["operations"]
    assert [(growth["before"], growth["after"]) for growth in found["growths"]] == [(7, 9)]
    assert (found["cases"], list(found["ledgers"]["after"])) == ({}, ["where"])


# --- Real programs --------------------------------------------------------------------------------


def deep(path: Path, layers: int, *, profile: bool) -> None:
    def step(weights: list[jax.Array], x: jax.Array) -> jax.Array:
        for weight in weights:
            x = jax.numpy.tanh(x @ weight)
        return x

    weights, x = [np.ones((8, 8), np.float32)] * layers, np.ones((4, 8), np.float32)
    with jitcount.record(profile=profile) as log:
        jax.jit(step)(weights, x)
    log.save(path)


@pytest.mark.parametrize("profile", [False, True])
def test_a_model_with_more_layers_is_seen_and_a_profile_names_the_line(
    tmp_path: Path, *, profile: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / "four.json", tmp_path / "six.json"]
    for path, layers in zip(paths, (4, 6), strict=True):
        deep(path, layers, profile=profile)
    assert main(["compare", *map(str, paths)]) == 1
    printed = capsys.readouterr().out
    first = deep.__code__.co_firstlineno
    line = f"{first + 3} in deep.step" if profile else f"{first + 8} in deep"
    assert f"  step: 8 → 12 operations at tests/_ledger/test_programs.py:{line}\n" in printed
    advice = "  → jitcount run --profile --ledger FILE keeps the line inside of it\n"
    assert (advice in printed) is not profile
    assert main(["compare", str(paths[0]), str(paths[0])]) == 0


def test_a_comprehension_is_the_line_of_its_function_as_from_python_3_12_on() -> None:
    sites = [
        CallSite(f"train.py:4 in {name}", "/a/train.py", 4, name)
        for name in ("load.<listcomp>", "load", "<dictcomp>", "<module>")
    ]
    before = [at(4, call_site=site) for site in (sites[0], sites[2])]
    after = [at(4, call_site=site) for site in (sites[1], sites[3])]
    assert of(run(*before), run(*after)).program_changes == []
