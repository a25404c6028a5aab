"""Small real programs, bare and recorded: the same output, each compile counted, each cause right.

They are written as their libraries' own examples are: ragged last batches, train and eval, folds,
several agents. A child process runs each both ways.
"""

import importlib.util
import re
from pathlib import Path

import pytest

from jitcount._explain.compile import Compile
from jitcount._ledger.ledger import read_ledger
from tests.helpers import jitcount, python

PROGRAMS = Path(__file__).parent / "programs"

# As in tests/libraries: where one of them is missing, this is not the session for it.
LIBRARIES = ("equinox", "flax", "haiku", "numpyro", "optax")
if missing := [name for name in LIBRARIES if importlib.util.find_spec(name) is None]:
    pytest.skip(f"needs {', '.join(missing)}", allow_module_level=True)

BATCH = "shape batch['x'], shape batch['y']"

# Of each program, all compiles of the user's own functions; LINE stands for a line of the program.
COMPILES: dict[str, list[str]] = {
    "equinox_cnn": [
        "make_step: first-call make_step",
        "make_step: shape x, shape y, shape keys",
        "make_step: static-argument model.activation",
        "make_step: shape x, shape y, shape keys",
        "evaluate: first-call evaluate",
        "evaluate: static-argument model.dropout.inference",
    ],
    "example_libraries": [
        "update: first-call update",
        "update: shape batch[0], shape batch[1]",
    ],
    "haiku_mlp": [
        "update: first-call update",
        "update: shape x, shape y",
        "predict: first-call predict",
        "predict: pytree is_training",
    ],
    "linen_classifier": [
        "train_step: first-call train_step",
        f"train_step: {BATCH}",
        "train_step: static-argument state.tx",
        f"train_step: {BATCH}",
        "forward: first-call forward",
        "forward: static-argument train",
    ],
    "mnist": [
        "step: first-call step",
        f"step: {BATCH}",
        "accuracy: first-call accuracy",
        "step: weak-type rate",
        "step: weak-type rate",
    ],
    "nnx_dropout": [
        "train_step: first-call train_step",
        "train_step: shape x, shape y",
        "predict: first-call predict",
        "predict: static-argument model.dropout.deterministic",
    ],
    "numpyro_nuts": [  # the library's own jit: the user has none
        "_fori_collect_loop: first-call _fori_collect_loop",
        "_fori_collect_loop: static-argument _body_fn",
    ],
    "numpyro_svi": [
        "update: first-call update",
        "update: shape args[0], shape args[1]",
    ],
    "ode": [
        "heun: first-call heun",
        "heun: shape state[0], shape state[1]",
        "heun: shape state[0], shape state[1]",
    ],
    "optax_folds": [
        "fit_step: first-call fit_step",
        "error: first-call error",
        "fit_step: new-function LINE",
        "fit_step: new-function LINE, shape x, shape y",
        "error: shape x, shape y",
    ],
    "server": [
        "answer: first-call answer",
        "answer: shape tokens, shape mask",
        "answer: shape tokens, shape mask",
    ],
    "two_agents": [
        "rollout: first-call rollout",
        "_update: first-call _update",
        "_update: new-function LINE",
        "rollout: static-argument steps",
        "_update: shape observations, shape rewards",
        "_update: shape observations, shape rewards",
    ],
    "vae": [
        "train_step: first-call train_step",
        "train_step: shape x",
        "draw: first-call draw",
        "draw: static-argument count",
        "draw: shape key, dtype key",
    ],
}


def test_every_program_has_its_compiles() -> None:
    assert {path.stem for path in PROGRAMS.glob("*.py")} == set(COMPILES)


def written(compiled: Compile) -> str:
    causes = ", ".join(f"{cause.kind} {cause.where}" for cause in compiled.causes)
    return re.sub(r"\S+\.py:\d+", "LINE", f"{compiled.function}: {causes}")


@pytest.mark.parametrize("name", COMPILES)
def test_a_real_program_runs_as_ever_and_each_recompile_is_explained(
    name: str, tmp_path: Path
) -> None:
    program, ledger = str(PROGRAMS / f"{name}.py"), tmp_path / "ledger.json"
    bare = python(program)
    recorded = jitcount("run", "--ledger", str(ledger), program)
    assert (bare.returncode, bare.stderr) == (0, "")
    assert (recorded.returncode, recorded.stdout) == (0, bare.stdout)
    assert bare.stdout

    (entry,) = read_ledger(ledger).cases.values()
    assert [written(c) for c in entry.compiles if not c.eager] == COMPILES[name]
    not_known = [
        f"{c.function} at {c.call_site}: {cause}"
        for c in entry.compiles
        for cause in c.causes
        if cause.kind in {"unknown", "caches-cleared"}
    ]
    assert not_known == []
