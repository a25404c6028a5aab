"""Each example runs as its docstring says, and shows what it is there to show."""

import pytest

from tests.helpers import ROOT, jitcount

SHOWN = {
    "train.py": ["step at examples/train.py:12 in <module>: 3 recompiles"],
    "model.py": ["loss 0.15084", "1 compile took "],
    "layers.py": ["loss 38.", "1 compile took "],
    "weak_type.py": [
        "weight 0.995",
        "train_step at examples/weak_type.py:21 in main: 1 recompile",
        "weight: weak float32 → float32",
        "→ pass jnp.float32(...) for weight in every call",
    ],
    "ragged_batches.py": [
        "mean length ",
        "mean_length at examples/ragged_batches.py:25 in main: 8 recompiles",
        "axis 1 of tokens: 22 … 38, 9 of them",
        "→ pad axis 1 of tokens to a few lengths with jitcount.bucketed, and mask the padding",
    ],
    "row_norms.py": ["norm of the last row 2.9", "float32[33000,3]"],
    "gradients_by_scatter.py": ["0 of 768 gradients are wrong, by up to 0"],
    "frozen_server.py": [
        "score 12.2",
        "score 24.4",
        "refused: axis 0 of request went from 32 to 33: float32[32] became float32[33]",
    ],
}

THERE = {
    "error_by_line.py": [
        "in loss: attention(query, key, value) @ output in bfloat16: ",
        '  precision="highest" there: ',
        "As if on tpu:v5e: loss may be ",
    ],
}
"""These need a compiler."""

RUN_BY_PAGES = ("cases.py",)
"""These are no programs: their pages run them."""


def test_every_example_is_run_here() -> None:
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == {
        *SHOWN,
        *THERE,
        *RUN_BY_PAGES,
    }


@pytest.mark.parametrize(
    "name", [*SHOWN, *(pytest.param(name, marks=pytest.mark.aot("tpu:v5e")) for name in THERE)]
)
def test_an_example_shows_what_it_is_there_for(name: str) -> None:
    done = jitcount("run", f"examples/{name}", cwd=ROOT)
    assert done.returncode == 0
    for line in (SHOWN | THERE)[name]:
        assert line in done.stdout + done.stderr, done.stdout + done.stderr
