"""What is written down holds no array's contents, and, where that is asked, no value at all."""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jitcount
from jitcount._explain.causes import Kind
from jitcount._ledger.environment import environment
from jitcount._ledger.ledger import CaseEntry, Ledger, write_ledger
from jitcount._record.log import CompileLog
from jitcount._registry import registry
from tests.helpers import Project
from tests.helpers import jitcount as command

pytestmark = pytest.mark.thorough

CONTENTS = 987654.25
X = np.zeros(3, np.float32)


@pytest.fixture(autouse=True)
def own_history() -> Iterator[None]:
    with registry.own_history():
        yield


@dataclasses.dataclass(frozen=True, eq=False)
class Holder:
    """Holds anything, and is known by its identity."""

    held: Any


@dataclasses.dataclass(frozen=True)
class Config:
    """Holds anything that can be hashed."""

    held: Any
    rate: float = 0.5


@jax.tree_util.register_pytree_node_class
class Node:
    """Keeps something beside its array."""

    def __init__(self, array: Any, kept: Any) -> None:
        self.array, self.kept = array, kept

    def tree_flatten(self) -> tuple[tuple[Any], Any]:
        return (self.array,), self.kept

    @classmethod
    def tree_unflatten(cls, kept: Any, children: Any) -> "Node":
        (array,) = children
        return cls(array, kept)


def written(log: CompileLog, path: Path) -> str:
    """All that a run leaves behind: the table, the causes, the ledger."""
    entry = CaseEntry(compiles=tuple(log.compiles))
    write_ledger(path, Ledger(environment=environment(), cases={"case": entry}))
    causes = [cause for compiled in log.compiles for cause in compiled.causes]
    texts = [str(log), repr(log), *map(repr, log.compiles), *map(str, causes)]
    return "\n".join([*texts, *(cause.advice for cause in causes), path.read_text()])


@functools.partial(jax.jit, static_argnums=1)
def step(x: Any, _static: Any) -> Any:
    return 2 * x


def secrets(number: int) -> list[Callable[[], object]]:
    """Programs into which arrays are compiled, by all ways that there are."""
    array = np.full(3, CONTENTS + number, np.float32)
    on_device = jnp.asarray(array)
    structure = jax.tree.structure(Node(X, array))
    statics = [
        array, on_device, [array] * 20, dict.fromkeys(map(str, range(500)), array),
        np.ma.masked_array(array), np.poly1d(array), np.polynomial.Polynomial(array), structure,
        functools.partial(len, array), jax.tree_util.Partial(len, array),
        np.array([CONTENTS + number], object), (array, Holder(array)),
    ]  # fmt: skip
    return [
        *(functools.partial(step, X, Holder(static)) for static in statics),
        lambda: jax.jit(lambda x: x + array)(X),
        lambda: jax.jit(lambda x: x + on_device)(X),
        lambda: jax.jit(functools.partial(jnp.add, array))(X),
        lambda: jax.jit(lambda node: node.array)(Node(X, Holder(array))),
        lambda: jax.lax.scan(lambda c, y: (c + array, y), X, X),
        lambda: on_device[np.array([0, 2])],
        lambda: jax.jit(lambda x: x, inline=bool(number))({"a": on_device}),
    ]


def test_no_array_is_written_down_wherever_it_is_held(tmp_path: Path) -> None:
    with jitcount.record() as log:
        for number in range(2):
            for program in secrets(number):
                program()
    text = written(log, tmp_path / "ledger.json")
    assert log.count() > 20
    assert "987654" not in text
    assert "987655" not in text


def test_a_refusal_holds_no_array_either() -> None:
    step(X, Holder(np.full(3, CONTENTS)))
    with pytest.raises(jitcount.RecompileError) as raised, jitcount.freeze():
        step(X, Holder(np.full(3, CONTENTS)))
    assert "987654" not in str(raised.value)


# --- What is left out where it is asked -----------------------------------------------------------


def told(secret: str) -> list[Callable[[], object]]:
    """Programs that depend on a text, by all ways that there are."""
    return [
        lambda: step(X, secret),
        lambda: step(X, Config(secret)),
        lambda: step(X, Config((("user", secret),))),
        lambda: step(X, Holder(secret)),
        lambda: step(X, Holder({secret: len(secret)})),
        lambda: step(X, len if "another" in secret else secret),
        lambda: jax.jit(lambda node: node.array)(Node(X, secret)),
        lambda: jax.jit(lambda node: node.array)(Node(X, Config(secret))),
        lambda: jax.jit(lambda node: node.array)(Node(X, (secret, 1))),
    ]


@pytest.mark.parametrize("way", ["none", "record", "environment"])
def test_static_values_can_be_left_out(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JITCOUNT_REDACT", "1" if way == "environment" else "0")
    with jitcount.record(redact=way == "record") as log:
        for programs in zip(told("hunter2"), told("another hunter3"), strict=True):
            for program in programs:
                program()
    text = written(log, tmp_path / "ledger.json")
    assert ("hunter" in text) == (way == "none")
    assert ("<redacted>" in text) == (way != "none")
    kinds = [cause.kind for compiled in log.compiles for cause in compiled.causes]
    assert kinds.count(Kind.STATIC_ARGUMENT) > 6, kinds  # that they differ is said all the same
    assert "_static.held" in text  # and where


def test_what_was_asked_for_when_it_was_compiled_holds_when_it_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with jitcount.record() as log:
        with monkeypatch.context() as within:
            within.setenv("JITCOUNT_REDACT", "1")
            step(X, "hunter20"), step(X, "hunter21")
        step(X, "hunter22")
    assert [cause.after for found in log.compiles[1:] for cause in found.causes] == [
        "<redacted>",
        "'hunter22'",
    ]


def test_what_is_left_out_is_said_so() -> None:
    with jitcount.record(redact=True) as log:
        for rate in 0.25, 0.125, 0.0625, 0.03125:
            step(X, Config((1, 2), rate))
    sentence = "static argument _static.rate went from <redacted> to <redacted>"
    assert [str(c.causes[0]) for c in log.compiles[1:]] == [sentence] * 3
    assert "static argument _static.rate: <redacted> → <redacted> (3 times)" in str(log)
    assert "0.125" not in str(log)


def test_an_error_of_a_guard_leaves_them_out_where_the_environment_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JITCOUNT_REDACT", "true")
    step(X, "hunter2")
    with pytest.raises(jitcount.RecompileError) as raised, jitcount.freeze():
        step(X, "hunter3")
    assert "static argument _static: <redacted> → <redacted>" in str(raised.value)
    assert "hunter" not in str(raised.value) + repr(raised.value.causes)


SCRIPT = """
import functools, jax, numpy as np
@functools.partial(jax.jit, static_argnums=1)
def step(x, key): return 2 * x
for key in "hunter2", "hunter3", "hunter4": step(np.zeros(3), key)
"""


def test_the_command_leaves_them_out(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    words = ("run", "--live", "--all", "--ledger", "ledger.json")
    wide = {"COLUMNS": "200"}
    told_all = command(*words, "script.py", cwd=tmp_path, env=wide)
    assert "'hunter3'" in told_all.stderr
    done = command(*words, "--redact", "script.py", cwd=tmp_path, env=wide)
    assert done.returncode == 0
    sentence = "static argument key: <redacted> → <redacted>"
    assert "jitcount: step(x f32[3]; key) at script.py:5 in <module>, " in done.stderr
    assert done.stderr.count(sentence) >= 4  # live, and in the table
    assert "hunter" not in done.stderr + (tmp_path / "ledger.json").read_text()


def test_the_plugin_leaves_them_out(tmp_path: Path) -> None:
    project = Project(tmp_path)
    body = SCRIPT.partition("for")[0]
    body += """
import pytest
@pytest.mark.compiles(step=1)
def test_it():
    for name in ("hunter2", "hunter3"): step(np.zeros(3), name)
"""
    project.write("test_it.py", body.replace("hunter2", "hunter' '2"), head="")
    (tmp_path / "pytest.ini").write_text("[pytest]\ncompile_redact = true\n")
    done = project.run("--compile-ledger=ledger.json", "--compiles", "--tb=no", "-rN")
    ledger = (tmp_path / "ledger.json").read_text()
    assert (done.returncode, "<redacted>" in ledger, "hunter" in ledger) == (1, True, False)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    shown = project.run("--compile-redact").stdout
    assert "static argument key: <redacted> → <redacted>" in shown
    assert "hunter" not in shown
