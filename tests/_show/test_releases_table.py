"""Ledgers of several releases side by side: what counts, and what is only shown."""

from typing import Any

from msgspec.structs import replace

from jitcount._explain.compile import Compile
from jitcount._ledger import releases
from jitcount._ledger.environment import environment
from jitcount._ledger.ledger import CaseEntry, Ledger
from jitcount._observe.call_site import CallSite
from jitcount._show.releases_table import UnderRelease, releases_parts
from jitcount._show.terminal import render
from jitcount._targets.result import OnTarget
from tests.expected import expect
from tests.helpers import STEP_COMPILED

HERE = "jax 1 (here)"


def at(line: int, function: str = "step", **fields: Any) -> Compile:
    site = CallSite(f"train.py:{line} in main", "/a/train.py", line, "main")
    given = {"function": function, "call_site": site, "operations": 7}
    return replace(STEP_COMPILED, **given | fields)


def under(jax: str, *compiles: Compile) -> Ledger:
    where = replace(environment(), as_if="", jax=jax)
    return Ledger(environment=where, cases={"train.py": CaseEntry(compiles=compiles)})


def shown(ledgers: dict[str, Ledger], **about: Any) -> list[str]:
    changed = releases.changes(HERE, ledgers)
    found = [UnderRelease(name, changes=changed[name], **about) for name in changed]
    parts = releases_parts(HERE, found, releases.functions(HERE, ledgers))
    return render(parts, 200).splitlines()


def on(memory: int) -> dict[str, OnTarget]:
    return {"tpu:v5e": OnTarget(target="tpu:v5e", argument_bytes=memory, output_bytes=0)}


def test_operations_seconds_and_memory_stand_side_by_side_and_are_no_difference() -> None:
    here = under("1", at(4, on=on(4096)))
    there = under("2", at(4, operations=70, compile_s=0.15, on=on(8192)))
    expect(
        shown({HERE: here, "jax 2": there}),
        [
            "jax 2 against jax 1 (here): no difference",
            "",
            "Also changed, and no difference",
            "  step: 4 KiB → 8 KiB on tpu:v5e, at train.py:4 in main",
            "",
            (
                "function   call site            under          compiles   operations     time   "
                "on tpu:v5e"
            ),
            "──────────────────────────────────────────────────────────────────────────────────────────",
            (
                "step       train.py:4 in main   jax 1 (here)          1            7   100 ms"
                "        4 KiB"
            ),
            (
                "                                jax 2                 1           70    1.50×"
                "        8 KiB"
            ),
            "",
            "time: of all its compiles here; below × against that, never judged",
        ],
    )


def test_a_function_that_is_gone_or_new_has_a_row_in_each_release_that_has_it() -> None:
    here = under("1", at(4), at(9, "old"), at(12, "add", eager=True))
    there = under("2", at(4), at(20, "new"))
    expect(
        shown({HERE: here, "jax 2": there}),
        [
            "jax 2 against jax 1 (here): 3 differences",
            "  new appeared: 1 compile at train.py:20 in main",
            "  old is gone: 1 compile at train.py:9 in main",
            "  operations outside of jit are gone: 1 compile at train.py:12 in main",
            "    add",
            "",
            "function   call site             under          compiles   operations     time",
            "──────────────────────────────────────────────────────────────────────────────",
            "step       train.py:4 in main    jax 1 (here)          1            7   100 ms",
            "                                 jax 2                 1            7    1.00×",
            "new        train.py:20 in main   jax 1 (here)       none",
            "                                 jax 2                 1            7   100 ms",
            "",
            "time: of all its compiles here; below × against that, never judged",
        ],
    )


def test_each_release_is_compared_with_here_and_not_with_the_one_before() -> None:
    ledgers = {
        HERE: under("1", at(4)),
        "jax 2": under("2", at(4), at(4)),
        "jax 3": under("3", at(4)),
    }
    counts = {name: len(changed) for name, changed in releases.changes(HERE, ledgers).items()}
    assert counts == {"jax 2": 1, "jax 3": 0}


def test_a_problem_is_one_difference_however_many_lines_it_has() -> None:
    ledgers = {HERE: under("1"), "jax 2": under("2")}
    lines = shown(ledgers, problems=["it ended with exit code 1", "what it printed is in x"])
    assert lines == [
        "jax 2 against jax 1 (here): 1 difference",
        "  it ended with exit code 1",
        "  what it printed is in x",
    ]


def test_other_names_of_as_many_operations_outside_of_jit_are_no_difference() -> None:
    here, there = (
        under("1", at(4, "unstack", eager=True)),
        under("2", at(4, "_unstack", eager=True)),
    )
    assert releases.changes(HERE, {HERE: here, "jax 2": there}) == {"jax 2": []}
