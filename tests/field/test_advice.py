"""What is advised for programs in the manner of real projects, and that it helps when applied.

Each program is run as it is, and again with the advice applied as a user would: its lines are
replaced in a copy. The output is the same, what was to be fixed is gone, and the compiles are few.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import pytest

from jitcount._explain.fixes import fixes
from jitcount._ledger.ledger import read_ledger
from tests.helpers import jitcount

if TYPE_CHECKING:
    from jitcount._explain.compile import Compile

ADVISED = Path(__file__).parent / "advised"

# As in tests/libraries: where one of them is missing, this is not the session for it.
LIBRARIES = ("equinox", "flax", "haiku", "optax")
if missing := [name for name in LIBRARIES if importlib.util.find_spec(name) is None]:
    pytest.skip(f"needs {', '.join(missing)}", allow_module_level=True)


Advised: TypeAlias = tuple[str, str, tuple[str, ...]]


class Case(NamedTuple):
    """One program: what is advised for it, and what a user makes of that."""

    advised: list[Advised]
    """Of each fix the code, what is compiled how often, and the advice; sorted."""

    applied: list[tuple[str, str]]
    """What is replaced in the sources, each found once, and by what."""

    before: int
    """How many programs are compiled as it is."""

    after: int
    """How many when the advice is applied."""

    left: list[Advised]
    """What is advised then."""


# A library of its own, in a folder site-packages.
IMPORTS = defaultdict(str, brax_training="acting", pgx_board="board_game")

CASES: dict[str, Case] = {
    "annotated_s4": Case(
        advised=[
            (
                "JC501",
                "model.init at annotated_s4.py:55 in <module>: 69 operations outside of jit",
                ("jax.jit(model.init)(...)",),
            )
        ],
        applied=[("= model.init(", "= jax.jit(model.init)(")],
        before=72,
        after=4,
        left=[],
    ),
    "brax_training": Case(
        advised=[
            (
                "JC501",
                "brax_training.py:19 in <module>: 19 operations outside of jit",
                (
                    "nothing to jit here; to keep them for the next run: JAX_COMPILATION_CACHE_DIR=FOLDER JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0",
                ),
            )
        ],
        applied=[
            (
                "import jax\nimport jax.numpy as jnp\nimport numpy as np\n\n\ndef make_policy",
                "import jax\nimport jax.numpy as jnp\nimport numpy as np\n\n\n@functools.partial(jax.jit, static_argnums=(1, 2))\ndef make_policy",
            ),
            ('a loop that calls back."""\n', 'a loop that calls back."""\n\nimport functools\n'),
            ("def evaluate(", "@jax.jit\ndef evaluate("),
            (
                '"mean": float(jnp.mean(rewards)), "worst": float(jnp.min(rewards))',
                '"mean": jnp.mean(rewards), "worst": jnp.min(rewards)',
            ),
        ],
        before=20,
        after=5,
        left=[],
    ),
    "distrax_mixture": Case(
        advised=[
            (
                "JC501",
                "distrax_mixture.py:16 in <module>: 3 operations outside of jit",
                (
                    "NumPy calls JAX for an array of JAX's at line 16: pass it np.asarray(...) of that",
                ),
            ),
            (
                "JC501",
                "mixture.log_prob at distrax_mixture.py:16 in <module>: 52 operations outside of jit",
                (
                    "jax.jit(mixture.log_prob)(...), and make the jitted function once, before the loop",
                ),
            ),
        ],
        applied=[
            ("import numpy as np\n", "import jax\nimport numpy as np\n"),
            ("for count in", "log_prob = jax.jit(mixture.log_prob)\nfor count in"),
            ("np.sum(mixture.log_prob(samples))", "np.sum(np.asarray(log_prob(samples)))"),
        ],
        before=55,
        after=3,
        left=[
            (
                "JC101",
                "log_prob at distrax_mixture.py:18 in <module>: 2 recompiles",
                (
                    "pad axis 0 of value to a few lengths with jitcount.bucketed, and mask the padding",
                ),
            )
        ],
    ),
    "dynamax_smoother": Case(
        advised=[
            (
                "JC501",
                "smooth at dynamax_smoother.py:39 in <module>: 9 operations outside of jit",
                ("jax.jit(smooth)(...)",),
            )
        ],
        applied=[
            ("import jax.numpy as jnp\n", "import jax\nimport jax.numpy as jnp\n"),
            ("= smooth(initial", "= jax.jit(smooth)(initial"),
        ],
        before=11,
        after=1,
        left=[],
    ),
    "e3nn_tetris": Case(
        advised=[
            (
                "JC501",
                "e3nn_tetris.py:15 in <module>: 25 operations outside of jit",
                (
                    "nothing to jit here; to keep them for the next run: JAX_COMPILATION_CACHE_DIR=FOLDER JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0",
                ),
            ),
            (
                "JC501",
                "jax.jacrev(along) at e3nn_tetris.py:26 in <module>: 30 operations outside of jit",
                ("jax.jit(jax.jacrev(along))(...)",),
            ),
        ],
        applied=[
            ("radius_graph(points, 1.1)", "radius_graph(points, 1.1, size=6)"),
            ("jax.jacrev(along)(points", "jax.jit(jax.jacrev(along))(points"),
        ],
        before=58,
        after=29,
        left=[
            (
                "JC501",
                "graphs.radius_graph at e3nn_tetris.py:15 in <module>: 25 operations outside of jit",
                ("jax.jit(graphs.radius_graph, static_argnames=('size',))(...)",),
            )
        ],
    ),
    "equinox_mlp": Case(
        advised=[
            (
                "JC501",
                "eqx.nn.MLP at equinox_mlp.py:20 in <module>: 10 operations outside of jit",
                ("eqx.filter_jit(eqx.nn.MLP)(...)",),
            )
        ],
        applied=[("= eqx.nn.MLP(", "= eqx.filter_jit(eqx.nn.MLP)(")],
        before=13,
        after=4,
        left=[],
    ),
    "evosax_strategy": Case(
        advised=[
            (
                "JC103",
                "ask at evosax_strategy.py:40 in <module>: 1 recompile",
                (
                    "make state strongly typed before the first call: jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.result_type(leaf)), state)",
                ),
            ),
            (
                "JC103",
                "tell at evosax_strategy.py:41 in <module>: 1 recompile",
                (
                    "make state strongly typed before the first call: jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.result_type(leaf)), state)",
                ),
            ),
        ],
        applied=[
            (
                "state = init(2)\n",
                "state = init(2)\nstate = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.result_type(leaf)), state)\n",
            )
        ],
        before=10,
        after=10,
        left=[],
    ),
    "gymnax_pendulum": Case(
        advised=[
            (
                "JC501",
                "env.reset at gymnax_pendulum.py:14 in <module>: 9 operations outside of jit",
                ("jax.jit(env.reset, static_argnames=('params',))(...)",),
            ),
            (
                "JC501",
                "env.step at gymnax_pendulum.py:16 in <module>: 11 operations outside of jit",
                (
                    "jax.jit(env.step, static_argnames=('params',))(...), and make the jitted function once, before the loop",
                ),
            ),
        ],
        applied=[
            ("= env.reset(", "= jax.jit(env.reset, static_argnames=('params',))("),
            (
                "for key in keys[1:]:\n",
                "step = jax.jit(env.step, static_argnames=('params',))\nfor key in keys[1:]:\n",
            ),
            ("= env.step(", "= step("),
        ],
        before=27,
        after=9,
        left=[],
    ),
    "jax_advi": Case(
        advised=[
            (
                "JC501",
                "jax_advi.py:40 in callback: 1 operation outside of jit",
                (
                    "plotly calls JAX for an array of JAX's at line 40: pass it np.asarray(...) of that",
                ),
            )
        ],
        applied=[
            ("import jax.numpy as jnp\n", "import jax.numpy as jnp\nimport numpy as np\n"),
            (
                "plotly.lineplot(on_a_grid(target, 1))",
                "plotly.lineplot(np.asarray(on_a_grid(target, 1)))",
            ),
            (
                "plotly.lineplot(on_a_grid(approximation, params))",
                "plotly.lineplot(np.asarray(on_a_grid(approximation, params)))",
            ),
        ],
        before=9,
        after=8,
        left=[],
    ),
    "jaxlie_poses": Case(advised=[], applied=[], before=8, after=8, left=[]),
    "jraph_nodes": Case(
        advised=[
            (
                "JC501",
                "net.init at jraph_nodes.py:46 in main: 51 operations outside of jit",
                ("jax.jit(net.init)(...)",),
            )
        ],
        applied=[("= net.init(", "= jax.jit(net.init)(")],
        before=54,
        after=4,
        left=[],
    ),
    "mctx_search": Case(advised=[], applied=[], before=3, after=3, left=[]),
    "nnx_toy": Case(
        advised=[
            (
                "JC501",
                "MLP at nnx_toy.py:42 in <module>: 13 operations outside of jit",
                ("nnx.jit(lambda rngs: MLP(1, 8, rngs=rngs))(nnx.Rngs(0))",),
            ),
            (
                "JC501",
                "model at nnx_toy.py:45 in <module>: 21 operations outside of jit",
                (
                    "nnx.jit(lambda model, X: model(X))(model, X), and make the jitted function once, before the loop",
                ),
            ),
        ],
        applied=[
            (
                "= MLP(1, 8, rngs=nnx.Rngs(0))\n",
                "= nnx.jit(lambda rngs: MLP(1, 8, rngs=rngs))(nnx.Rngs(0))\npredict = nnx.jit(lambda model, X: model(X))\n",
            ),
            ("= model(X)\n", "= predict(model, X)\n"),
        ],
        before=38,
        after=6,
        left=[],
    ),
    "numpyro_gp": Case(
        advised=[
            (
                "JC501",
                "kernel at numpyro_gp.py:24 in model: 11 operations outside of jit",
                ("jax.jit(kernel)(...)",),
            ),
            (
                "JC501",
                "numpyro_gp.py:14 in normal: 6 operations outside of jit",
                ("compute what line 14 computes in a jitted function, or with NumPy",),
            ),
        ],
        applied=[
            ("def normal(", "@jax.jit\ndef normal("),
            ("import jax.numpy as jnp\n", "import jax\nimport jax.numpy as jnp\n"),
            ("= kernel(x", "= jax.jit(kernel)(x"),
        ],
        before=25,
        after=11,
        left=[
            (
                "JC501",
                "numpyro_gp.py:31 in <module>: 5 operations outside of jit",
                (
                    "nothing to jit here; to keep them for the next run: JAX_COMPILATION_CACHE_DIR=FOLDER JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0",
                ),
            )
        ],
    ),
    "optax_optimizer": Case(
        advised=[
            (
                "JC501",
                "optimizer.init at optax_optimizer.py:31 in <module>: 8 operations outside of jit",
                ("jax.jit(optimizer.init)(...)",),
            )
        ],
        applied=[("= optimizer.init(", "= jax.jit(optimizer.init)(")],
        before=9,
        after=2,
        left=[],
    ),
    "optimistix_root": Case(
        advised=[
            (
                "JC501",
                "root_find at optimistix_root.py:30 in <module>: 2 operations outside of jit",
                ("jax.jit(root_find, static_argnames=('function',))(...)",),
            )
        ],
        applied=[("= root_find(", "= jax.jit(root_find, static_argnames=('function',))(")],
        before=5,
        after=3,
        left=[],
    ),
    "penzai_layers": Case(
        advised=[
            (
                "JC301",
                "<lambda> at penzai_layers.py:13 in <module>: 2 recompiles",
                (
                    "make the lambda once, and its jax.jit once; pass what it reads, if that changes, as an argument",
                ),
            )
        ],
        applied=[
            (
                "    soften = jax.jit(lambda weight, x, temperature: jnp.tanh(x @ weight / temperature))\n",
                "",
            ),
            (
                "for temperature in",
                "soften = jax.jit(lambda weight, x, temperature: jnp.tanh(x @ weight / temperature))\nfor temperature in",
            ),
        ],
        before=3,
        after=1,
        left=[],
    ),
    "pgx_board": Case(
        advised=[
            (
                "JC502",
                "import board_game at pgx_board.py:8 in <module>: 9 operations",
                (
                    "make constants with NumPy at board_game.py:8 in <module>, board_game.py:6 in <module> and board_game.py:7 in <module>",
                ),
            )
        ],
        applied=[
            ("import jax.numpy as jnp\n", "import jax.numpy as jnp\nimport numpy as np\n"),
            ("jnp.zeros(9, jnp.int32)", "np.zeros(9, np.int32)"),
            ("jnp.arange(9)", "np.arange(9)"),
            (
                "jnp.concatenate([ROWS, ROWS.T, jnp.diag(ROWS)[None], jnp.diag(ROWS[::-1])[None]])",
                "np.concatenate([ROWS, ROWS.T, np.diag(ROWS)[None], np.diag(ROWS[::-1])[None]])",
            ),
        ],
        before=10,
        after=1,
        left=[],
    ),
    "rlax_agent": Case(
        advised=[
            (
                "JC101",
                "update at rlax_agent.py:27 in <module>: 2 recompiles",
                (
                    "pad axis 0 of observations to a few lengths with jitcount.bucketed, and mask the padding",
                    "pad axis 0 of rewards to a few lengths with jitcount.bucketed, and mask the padding",
                ),
            ),
            (
                "JC201",
                "update at rlax_agent.py:27 in <module>: 3 recompiles",
                (
                    "pass learning_rate as an array if it is only computed with; if it gives a shape or chooses a branch, keep to a few values",
                ),
            ),
        ],
        applied=[
            ('@functools.partial(jax.jit, static_argnames="learning_rate")', "@jax.jit"),
            ("rewards, learning_rate):", "rewards, learning_rate, length):"),
            ("jnp.sum(errors**2)", "jnp.sum(jnp.where(jnp.arange(9) < length, errors, 0) ** 2)"),
            (
                "        weights, value = update(weights, observations, rewards, learning_rate)\n",
                "        observations = np.pad(observations, ((0, 9 - length), (0, 0)))\n        rewards = np.pad(rewards, (0, 9 - length))\n        rate = np.float32(learning_rate)\n        weights, value = update(weights, observations, rewards, rate, length)\n",
            ),
        ],
        before=6,
        after=1,
        left=[],
    ),
    "tinygp_fit": Case(
        advised=[
            (
                "JC103",
                "fit_step at tinygp_fit.py:28 in <module>: 1 recompile",
                ("pass jnp.float32(...) for scale, noise in every call",),
            )
        ],
        applied=[("= 1.0, 0.1\n", "= jnp.float32(1.0), jnp.float32(0.1)\n")],
        before=2,
        after=2,
        left=[],
    ),
}


def run(name: str, folder: Path) -> tuple[str, tuple[Compile, ...]]:
    """What a program prints, and what it compiles."""
    ledger = folder / "ledger.json"
    finished = jitcount("run", "--ledger", str(ledger), f"{name}.py", cwd=folder)
    assert finished.returncode == 0, finished.stderr
    (entry,) = read_ledger(ledger).cases.values()
    return finished.stdout, tuple(entry.compiles)


def advised(compiles: tuple[Compile, ...]) -> list[Advised]:
    return sorted((fix.code, fix.in_words, fix.advices) for fix in fixes(compiles))


def apply(name: str, folder: Path) -> None:
    """Replace the lines of a program, or of the library that it has for itself."""
    program = folder / f"{name}.py"
    libraries = [path for path in folder.glob("site-packages/*.py") if path.stem in IMPORTS[name]]
    for old, new in CASES[name].applied:
        (file,) = (path for path in (program, *libraries) if old in path.read_text())
        text = file.read_text()
        assert text.count(old) == 1, old
        file.write_text(text.replace(old, new))


def test_every_program_has_its_advice() -> None:
    assert {path.stem for path in ADVISED.glob("*.py")} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_the_advice_for_a_program_helps_when_it_is_applied(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    for each in ("before", "after"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ADVISED, tmp_path / each, ignore=ignored)
    printed, compiles = run(name, tmp_path / "before")
    assert printed
    assert sorted(advised(compiles)) == sorted(case.advised)  # by seconds, which differ
    assert len(compiles) == case.before
    if not case.applied:
        return
    apply(name, tmp_path / "after")
    printed_after, compiles_after = run(name, tmp_path / "after")
    assert printed_after == printed
    assert sorted(advised(compiles_after)) == sorted(case.left)
    assert len(compiles_after) == case.after
