"""Notebooks as people run them: a kernel, cells, and what they show."""

import re
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

CELLS = [
    """%load_ext jitcount
import jax, numpy as np
@jax.jit
def step(x):
    return 2 * x""",
    """%%jitcount

for n in (3, 4):
    y = step(np.ones(n, np.float32))
y.shape""",
    """import jitcount
with jitcount.record() as log:
    step(np.ones(9, np.float32))
log""",
    "log.compiles[0]",
    "z = %jitcount step(np.ones(11, np.float32))",
    """%%jitcount
step(np.ones(12, np.float32))
1 / 0""",
    "z.shape, y.shape",
    "%%jitcount now\n1",
    "%unload_ext jitcount\n%jitcount 1",
    "%load_ext jitcount",
    "%%jitcount\nz.shape;",
    "import asyncio\nawait asyncio.sleep(0, 'awaited')",
    "%%jitcount\nawait asyncio.sleep(0, 'not awaited')",
    "%%jitcount\nawait = 1",
    "%%jitcount\n%%timeit -n1 -r1 -q\nstep(np.ones(13, np.float32))",
]


@pytest.fixture(scope="module")
def outputs() -> list[list[Any]]:
    """What each cell showed."""
    cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=300, allow_errors=True).execute()
    return [cell.outputs for cell in notebook.cells]


def shown(output: Any) -> list[str]:
    """The text of HTML, line by line, with the times taken out; of a table, its cells."""
    html = output["data"]["text/html"].replace("</td><td", "</td> | <td")
    text = re.sub(r"[\d.]+ (s|ms|µs)\b", "TIME", re.sub(r"<[^>]+>", "", html))
    text = re.sub(r"took [\d.]+ of", "took TIME of", re.sub(r"\([\d.]+ %\)", "(FIGURE)", text))
    return [line for line in text.splitlines() if line]


def test_a_cell_shows_its_value_and_what_it_compiled(outputs: list[list[Any]]) -> None:
    table, value = outputs[1]
    assert value["data"]["text/plain"] == "(4,)"
    assert shown(table) == [
        "2 compiles took TIME of TIME (FIGURE); what is listed below would save TIME",
        "What to fix",
        "1. step at In [2], line 4: 1 recompile, TIME [JC101]",
        "axis 0 of x: 3 → 4",
        "→ pad axis 0 of x to a few lengths with jitcount.bucketed, and mask the padding",
        "functionargumentscompilestimecall sitecause",
        "step | x f32[3] | 2 | TIME | In [2], line 4 | axis 0 of x: 3 → 4",
        "in all: trace TIME, lower TIME, XLA TIME",
    ]
    assert table["data"]["text/plain"].startswith("2 compiles took ")


def test_a_log_and_a_compile_are_shown_as_html(outputs: list[list[Any]]) -> None:
    (log,), (compiled,) = outputs[2:4]
    assert shown(log)[-2] == "step | x f32[9] | 1 | TIME | In [3], line 3 | axis 0 of x: 4 → 9"
    assert shown(compiled)[:2] == ["step(float32[9])", "at In [3], line 3"]


def test_a_line_has_its_value_too(outputs: list[list[Any]]) -> None:
    (table,) = outputs[4]
    row = "step | x f32[11] | 1 | TIME | In [5], line 1 | axis 0 of x: 9 → 11"
    assert shown(table)[-2] == row
    assert outputs[6][0]["data"]["text/plain"] == "((11,), (4,))"


def test_what_a_cell_raises_is_its_own_and_its_compiles_are_shown(
    outputs: list[list[Any]],
) -> None:
    table, error = outputs[5]
    row = "step | x f32[12] | 1 | TIME | In [6], line 2 | axis 0 of x: 11 → 12"
    assert shown(table)[-2] == row
    assert (error["ename"], error["evalue"]) == ("ZeroDivisionError", "division by zero")
    assert "_notebook.py" not in "".join(error["traceback"])


def test_the_magic_refuses_what_it_does_not_take_and_can_be_taken_away(
    outputs: list[list[Any]],
) -> None:
    texts = [output["text"].strip() for cell in outputs[7:9] for output in cell]
    assert texts == [
        "UsageError: %%jitcount takes nothing beside the cell below; 'now'",
        "UsageError: Line magic function `%jitcount` not found.",
    ]


def test_a_value_that_a_semicolon_silences_is_not_shown(outputs: list[list[Any]]) -> None:
    (table,) = outputs[10]
    assert table["data"]["text/plain"] == "nothing was compiled"


def test_a_cell_that_awaits_is_refused_with_what_to_do_instead(outputs: list[list[Any]]) -> None:
    (awaited,), (refused,), (wrong,) = outputs[11:14]
    assert awaited["data"]["text/plain"] == "'awaited'"
    assert refused["text"].strip() == (
        "UsageError: %%jitcount cannot run a cell that awaits; open `with jitcount.record() as "
        "log:` in the cell, and end it with `log`"
    )
    assert wrong["ename"] == "SyntaxError"


def test_another_magic_may_stand_below(outputs: list[list[Any]]) -> None:
    (table,) = outputs[14]
    assert shown(table)[-2].startswith("step | x f32[13] | 1 | TIME | ")
