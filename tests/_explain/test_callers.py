"""Which call of a program is named for its operations outside of jit, and what jitting it does."""

import linecache
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import jax
import pytest

import jitcount
from jitcount import Caller, CompileLog
from jitcount._explain.fixes import fixes

# Operations enough to be worth a jit.
NET = """
    import jax, jax.numpy as jnp, numpy as np

    def net(key, x):
        for width in (4, 3):
            key, mine = jax.random.split(key)
            x = jax.nn.relu(x @ jax.random.normal(mine, (x.shape[-1], width)) + jnp.zeros(width))
        return x

    def init(key, x):
        return net(key, x / 2)

    key, x = jax.random.key(0), np.ones((1, 5), np.float32)
"""

Run = Callable[..., CompileLog]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(*pieces: str) -> CompileLog:
        script, module = tmp_path / "train.py", ModuleType("a_script_of_a_test")
        script.write_text("".join(map(textwrap.dedent, pieces)))
        linecache.checkcache(str(script))
        monkeypatch.setitem(sys.modules, module.__name__, module)
        jax.clear_caches()
        with jitcount.record() as log:
            exec(compile(script.read_text(), str(script), "exec"), vars(module))  # noqa: S102
        return log

    return run


def advice(log: CompileLog) -> list[tuple[str, str]]:
    """What is to be fixed, with the advice, of what takes more than a few operations."""
    found = (fix for fix in fixes(log.compiles) if fix.code == "JC501")
    return [(fix.what, fix.advice) for fix in found if fix.count >= 5]


def callers(log: CompileLog) -> dict[str, Caller]:
    return {c.calls: c for compiled in log.compiles for c in compiled.callers if c.calls}


def test_the_outermost_call_that_can_be_jitted_is_named_and_jitting_it_helps(run: Run) -> None:
    log = run(NET, "init(key, x)\n")
    assert advice(log) == [("init", "jax.jit(init)(...)")]
    fix = fixes(log.compiles)[0]
    assert fix.in_words.startswith("init at train.py:14 in <module>: ")
    jitted = run(NET, "jax.jit(init)(key, x)\n")
    assert len(jitted.compiles) == len(log.compiles) - fix.count + 1
    assert advice(jitted) == []


@pytest.mark.thorough
def test_what_is_no_array_is_static(run: Run) -> None:
    scaled = """
        def scaled(key, x, name, factor=2):
            assert isinstance(name, str)
            return factor * net(key, x) if factor > 1 else x

    """
    log = run(NET, scaled, "scaled(key, x, 'net', factor=3)\n")
    text = "jax.jit(scaled, static_argnames=('name', 'factor'))"
    assert advice(log) == [("scaled", f"{text}(...)")]
    assert advice(run(NET, scaled, f"{text}(key, x, 'net', factor=3)\n")) == []


@pytest.mark.thorough
def test_what_has_no_hash_stays_in_a_lambda(run: Run) -> None:
    layered = """
        def layered(key, x, names):
            return {name: net(key, x) for name in names}

    """
    log = run(NET, layered, "layered(key, x, ['a', 'b'])\n")
    text = "jax.jit(lambda key, x: layered(key, x, ['a', 'b']))(key, x)"
    assert advice(log) == [("layered", text)]
    assert advice(run(NET, layered, f"{text}\n")) == []


@pytest.mark.thorough
def test_a_lambda_in_a_loop_is_to_be_made_once(run: Run) -> None:
    layered = """
        def layered(key, x, names):
            return {name: net(key, x) for name in names}

    """
    loop = "for _ in range(3):\n    "
    log = run(NET, layered, f"{loop}layered(key, x, ['a', 'b'])\n")
    made, given = "jax.jit(lambda key, x: layered(key, x, ['a', 'b']))", "(key, x)"
    once = "make the jitted function once, before the loop"
    assert advice(log) == [("layered", f"{made}{given}, and {once}")]
    applied = run(NET, layered, f"jitted = {made}\n{loop}jitted{given}\n")
    assert len(applied.compiles) == len(log.compiles) - fixes(log.compiles)[0].count + 1


@pytest.mark.thorough
def test_a_named_tuple_is_no_object_that_a_jit_cannot_return(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    states = """
        from typing import NamedTuple

        class State(NamedTuple):
            key: object
            x: object

        def reset(key, x):
            return State(key, net(key, x))

    """
    text = "".join(map(textwrap.dedent, (NET, states)))
    (tmp_path / "environment_of_mine.py").write_text(text)
    start = "from environment_of_mine import key, reset, x\n"
    log = run(start, "reset(key, x)\n")
    assert ("reset", "jax.jit(reset)(...)") in advice(log)
    applied = run(start, "import jax\njax.jit(reset)(key, x)\n")
    assert "reset" not in dict(advice(applied))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "sized",
    [
        "jnp.repeat(x, 2)",
        "jnp.repeat(x, np.array([2]), axis=0, total_repeat_length=2)",
        "jnp.nonzero(x, size=3)[0]",
    ],
)
def test_shapes_that_are_given_do_not_depend_on_values(run: Run, sized: str) -> None:
    of_size = f"\ndef of_size(key, x):\n    return net(key, x).sum() + {sized}.sum()\n\n"
    log = run(NET, of_size, "of_size(key, x)\n")
    assert ("of_size", "jax.jit(of_size)(...)") in advice(log)
    assert advice(run(NET, of_size, "jax.jit(of_size)(key, x)\n")) == []


LOOP = """
    step = jax.jit(lambda x: x + 1)

    def train(key, x):
        y = init(key, x)
        return step(y)

"""


@pytest.mark.thorough
def test_a_call_that_runs_a_jitted_function_is_a_driver(run: Run) -> None:
    log = run(NET, LOOP, "train(key, x)\n")
    assert advice(log) == [("init", "jax.jit(init)(...)")]


SMALL_NET = """
    import jax, jax.numpy as jnp, numpy as np

    def net(key, x):
        return jnp.sqrt(x)

    key, x = jax.random.key(0), np.ones((1, 5), np.float32)
"""

WHY_NOT = {
    "it loops": "while len(net(key, x)) > 1:\n        pass\n    return x",
    "it reads a value": "return float(net(key, x).sum())",
    "it prints": "print(net(key, x).shape)\n    return x",
    "it returns nothing": "net(key, x)",
    "it changes a global variable": "global x_\n    x_ = net(key, x)\n    return x_",
    "it branches on a value": "return x if jnp.any(net(key, x)) else -x",
    "it makes a jitted function": "return jax.jit(net)(key, x) + net(key, x)",
    "its shapes depend on values": "return jnp.unique(net(key, x))",
    "it draws random numbers on the host": "return net(key, x) * np.random.rand()",
}


@pytest.mark.parametrize("reason", WHY_NOT)
@pytest.mark.usefixtures("capsys")
def test_a_call_that_cannot_be_jitted_is_not_named(run: Run, reason: str) -> None:
    outer = f"\ndef outer(key, x):\n    {WHY_NOT[reason]}\n\n"
    log = run(SMALL_NET, outer, "outer(key, x)\n")
    assert callers(log)["outer"].why_not == reason
    assert "outer" not in dict(advice(log))


def test_an_operator_that_ends_with_a_call_is_no_call(run: Run) -> None:
    log = run("import jax.numpy as jnp, numpy as np\ny = np.ones(3) + jnp.sqrt(np.ones(3))\n")
    calls = {compiled.function: compiled.callers[-1].calls for compiled in log.compiles}
    assert (calls["add"], calls["sqrt"]) == ("", "jnp.sqrt")


def test_an_import_that_compiles_is_named_and_numpy_mends_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "tables_of_mine.py"
    made = "{np}\nTABLE = jnp.cumsum(jnp.arange(8.0)) * 2 + 1\n"
    module.write_text(made.format(np="import jax.numpy as jnp"))
    (fix,) = fixes(run("import tables_of_mine\n").compiles)
    assert fix.in_words == "import tables_of_mine at train.py:1 in <module>: 4 operations"
    assert fix.advice == "make constants with NumPy at tables_of_mine.py:2 in <module>"
    monkeypatch.delitem(sys.modules, "tables_of_mine")
    module.write_text(made.format(np="import numpy as jnp"))
    assert run("import tables_of_mine, jax\n").compiles == ()


def library(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, name: str) -> None:
    """Install a module, as far as anyone can tell from where it is."""
    packages = folder / "site-packages"
    packages.mkdir()
    (packages / f"{name}.py").write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(packages)


def test_an_import_hook_is_not_what_is_imported(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Type checkers load modules their own way; their frames stand in between."""
    hook = """
        import importlib.machinery, importlib.util, pathlib, sys

        class Loader(importlib.machinery.SourceFileLoader):
            def exec_module(self, module):
                super().exec_module(module)

        class Finder:
            def find_spec(name, path, target=None):
                file = pathlib.Path(__file__).parents[1] / f"{name}.py"
                if file.exists():
                    loader = Loader(name, str(file))
                    return importlib.util.spec_from_file_location(name, file, loader=loader)

        sys.meta_path.insert(0, Finder)
    """
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    library(tmp_path, monkeypatch, hook, "hook_of_mine")
    module = tmp_path / "tables_of_a_hook.py"
    module.write_text("import jax.numpy as jnp\nTABLE = jnp.cumsum(jnp.arange(8.0)) * 2 + 1\n")
    (fix,) = fixes(run("import hook_of_mine\nimport tables_of_a_hook\n").compiles)
    assert fix.in_words == "import tables_of_a_hook at train.py:2 in <module>: 4 operations"


def test_a_call_of_the_library_that_calls_the_function_is_not_named(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers = """
        def sample(name, value):
            return value * 2

        def run(model, x):
            while True:
                return model(x)
    """
    library(tmp_path, monkeypatch, handlers, "handlers_of_mine")
    model = """
        import handlers_of_mine, jax.numpy as jnp, numpy as np

        def model(x):
            return handlers_of_mine.sample("x", x) + 1

        handlers_of_mine.run(model, jnp.ones(3))
    """
    called = callers(run(model))
    assert called["handlers_of_mine.run"].library == "handlers_of_mine"
    reason = "handlers_of_mine calls the function around it"
    assert (called["handlers_of_mine.sample"].why_not) == reason
    assert called["handlers_of_mine.sample"].jitted == ""


@pytest.mark.parametrize(("given", "reason"), [("", "its shapes depend on values"), ("size=2", "")])
def test_a_size_that_is_left_out_is_none(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, reason: str
) -> None:
    edges = """
        import jax.numpy as jnp

        def edges(near, size=None):
            return jnp.where(jnp.tanh(near), size=size)
    """
    library(tmp_path, monkeypatch, edges, "edges_of_mine")
    near = "import numpy as np, edges_of_mine\nnear = np.eye(3)\n"
    log = run(near, f"edges_of_mine.edges(near{given and ', '}{given})\n")
    assert callers(log)["edges_of_mine.edges"].why_not == reason


def test_an_object_that_another_function_makes_is_returned_all_the_same(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = """
        import jax.numpy as jnp

        class Gaussian:
            def __init__(self, mean):
                self.mean = mean

        def predict(x):
            return condition(x)

        def condition(x):
            return Gaussian(jnp.tanh(x))
    """
    library(tmp_path, monkeypatch, process, "process_of_mine")
    log = run("import numpy as np, process_of_mine\nprocess_of_mine.predict(np.ones(3))\n")
    assert callers(log)["process_of_mine.predict"].why_not == "it returns an object"


@pytest.mark.thorough
def test_what_a_partial_has_is_not_given_by_the_call(run: Run) -> None:
    partial = """
        import functools

        def along(matvec, key, x):
            return matvec(net(key, x))

        bound = functools.partial(along, jnp.sin)
    """
    log = run(NET, partial, "bound(key, x)\n")
    assert advice(log) == [("bound", "jax.jit(bound)(...)")]
    assert advice(run(NET, partial, "jax.jit(bound)(key, x)\n")) == []


def test_the_arguments_of_a_frame_are_not_kept_alive(run: Run) -> None:
    """What a function drops while it runs is gone, though it was looked at."""
    log = run(
        """
        import gc, weakref, jax.numpy as jnp, numpy as np

        class Box:
            pass

        def outer(box):
            jnp.sqrt(np.ones(7))
            seen = weakref.ref(box)
            del box
            gc.collect()
            return seen() is None

        gone = outer(Box())
        assert gone
        """
    )
    assert callers(log)["outer"].why_not == "box is no array"


def test_what_calls_the_block_itself_is_not_named(run: Run) -> None:
    """The test's own lines call the block that `run` opens."""
    log = run(SMALL_NET, "net(key, x)\n")
    files = {Path(caller.site.file).name for c in log.compiles for caller in c.callers}
    assert files == {"test_callers.py", "train.py"}
    assert "run" not in callers(log)


TABLE = """
    import sys, types
    import jax.numpy as jnp, numpy as np

    tables = types.ModuleType("tables")
    tables.mean = np.arange(4.0, dtype=np.float32)

    def features(x):
        y = jnp.cumsum(x) * tables.mean.max()
        return jnp.tanh(y).sum() * jnp.exp(y).mean() + jnp.cos(y).prod()
"""


def test_a_modules_array_is_looked_at_as_a_name_and_not_as_a_value(run: Run) -> None:
    log = run(TABLE, "features(np.ones(7, np.float32))\n")
    assert callers(log)["features"].why_not == "it reads tables, which changes"


def test_what_cannot_be_looked_at_is_a_reason_and_no_error(run: Run) -> None:
    broken = """
    class Broken(types.ModuleType):
        def __getattr__(self, name):
            raise RuntimeError(name)

    tables = Broken("tables")

    def features(x):
        y = jnp.cumsum(x)
        if x is None:
            y = tables.other(y)
        return jnp.tanh(y).sum() * jnp.exp(y).mean() + jnp.cos(y).prod()

    """
    log = run(TABLE, broken, "features(np.ones(7, np.float32))\n")
    found = {caller.why_not for compiled in log.compiles for caller in compiled.callers}
    assert "its source could not be read" in found


BY_VALUES = "computes with NumPy: its shapes depend on values"
BRANCHES = "computes with NumPy: it branches on a value"
EITHER = "computes in a jitted function, or with NumPy"


@pytest.mark.parametrize(
    ("lines", "advised"),
    [
        (["x[y > 3].shape"], [f"line 6 {BY_VALUES}"]),
        (["m = ~(y > 3)", "x[m]"], [f"line 6 {EITHER}", f"line 7 {BY_VALUES}"]),
        (["u = jnp.unique(x); u * 2 + u / 3"], [f"line 6 {BY_VALUES}"]),
        (["u = jnp.unique(x)", "u * 2 + u / 3"], [f"line {n} {BY_VALUES}" for n in (6, 7)]),
        (["if float(x.sum()) > 0:", "    pass"], [f"line 6 {BRANCHES}"]),
        (["while (x * 2).sum() < 0:", "    pass"], [f"line 6 {BRANCHES}"]),
        (["n = int(jnp.sum(x * 2))"], ["line 6 computes with NumPy: it reads a value"]),
        (["n = (x * 2).tolist()"], ["line 6 computes with NumPy: it reads a value"]),
        (["np.asarray(x * 2 + 1)"], ["line 6 computes with NumPy: it makes a NumPy array"]),
        (["x.at[y > 3].set(0)"], [f"line 6 {EITHER}"]),
        (["if (x * 2).shape[0] > 3:", "    y - 1 / x"], [f"line {n} {EITHER}" for n in (6, 7)]),
    ],
)
def test_a_line_that_needs_values_is_not_for_a_jit(
    run: Run, lines: list[str], advised: list[str]
) -> None:
    begin = "import jax, jax.numpy as jnp, numpy as np\n\nfor n in (13, 17, 19, 23):\n"
    arrays = "    x = jax.device_put(np.arange(n, dtype=np.float32))\n    y = jax.device_put(x)\n"
    log = run(begin + arrays + "".join(f"    {line}\n" for line in lines))
    found = [fix.advice for fix in fixes(log.compiles)]
    assert sorted(found) == [f"compute what {each}" for each in advised]


def test_lines_of_which_one_needs_values_are_for_numpy(run: Run) -> None:
    log = run(
        """
        import jax, jax.numpy as jnp, numpy as np

        def distinct(x):
            y = x / 3 + 1
            u = jnp.unique(x)
            return u * 2, y

        for n in (13, 17, 19, 23):
            distinct(jax.device_put(np.arange(n, dtype=np.float32)))
        """
    )
    assert [fix.advice for fix in fixes(log.compiles)] == [
        "compute what lines 5 to 7 compute with NumPy: at line 6 its shapes depend on values"
    ]
