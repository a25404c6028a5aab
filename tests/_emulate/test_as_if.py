"""`as_if` with a compiler that answers what the test says: no process is started."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jitcount
from jitcount._emulate import as_if, emulator
from jitcount._emulate.active_target import active_target
from jitcount._emulate.emulator import BytesCache, Emulator
from jitcount._jax import executables
from jitcount._jax.substituting import Compilable
from jitcount._targets import installed
from jitcount._targets.compilers import Compilers
from jitcount._targets.names import parse
from jitcount._targets.protocol import Answer, BuildExecutable
from tests._emulate.cases import module, parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jitcount._targets.names import Target
    from jitcount._targets.protocol import Task

X = np.arange(3, dtype=np.float32)
THREE_TIMES = module(
    f"{parameters(X)}\n%t = f32[] constant(3)\n%b = f32[3]{{0}} broadcast(%t), dimensions={{}}\n"
    "ROOT %m = f32[3]{0} multiply(%p0, %b)"
)


class FakeCompilers:
    """What the target's compiler says, and what the CPU's."""

    def __init__(self) -> None:
        self.there = Answer(block=THREE_TIMES.encode())
        self.here = Answer()
        self.asked: list[str] = []

    def answer(self, target: Target, task: Task, module: bytes) -> Answer:
        self.asked.append(target.name)
        if isinstance(task, BuildExecutable) and self.here.error is None:
            return Answer(block=self.executable(task, module))
        return self.here if isinstance(task, BuildExecutable) else self.there

    @staticmethod
    def executable(task: BuildExecutable, module: bytes) -> bytes:
        del task, module
        return b""

    def say(self, hlo: str) -> None:
        self.there = Answer(block=hlo.encode())


@pytest.fixture
def compilers(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCompilers]:
    made = FakeCompilers()

    def ask(_: Compilers, target: Target, task: Task, module: bytes, timeout: float) -> Answer:
        del timeout
        return made.answer(target, task, module)

    monkeypatch.setattr(Compilers, "ask", ask)
    monkeypatch.setattr(Emulator, "get_ready", lambda _: None)
    monkeypatch.setattr(emulator, "_programs", BytesCache(1 << 20, lambda made: len(made.hlo)))
    monkeypatch.setattr(emulator, "_executables", BytesCache(1 << 20, len))
    monkeypatch.setattr(as_if, "require_installed", lambda _: None)
    yield made
    assert active_target() == ""


def _double(x: Any) -> Any:
    return x * 2


def _emulator(name: str = "tpu:v5e") -> Emulator:
    return Emulator.for_target(parse(name), 60.0)


def test_the_targets_program_runs_in_place_of_the_cpus(compilers: FakeCompilers) -> None:
    f = jax.jit(_double)
    np.testing.assert_array_equal(f(X), X * 2)
    with jitcount.as_if("tpu:v5e") as emulation:
        np.testing.assert_array_equal(f(X), X * 3)
        np.testing.assert_array_equal(f(X), X * 3)
    np.testing.assert_array_equal(f(X), X * 2)
    (program,) = emulation.programs
    assert (program.function, program.signature) == ("_double", ("float32[3]",))
    assert (program.faithful, program.reason) == (True, "")
    assert emulation.faithful
    assert compilers.asked == ["tpu:v5e", "cpu"]
    assert str(emulation) == "As if on tpu:v5e: 1 of 1 programs computed as there"


def test_the_same_program_is_compiled_once(compilers: FakeCompilers) -> None:
    for _ in range(2):
        jax.clear_caches()
        with jitcount.as_if("tpu:v5e"):
            np.testing.assert_array_equal(jax.jit(_double)(X), X * 3)
    assert compilers.asked == ["tpu:v5e", "cpu"]


@pytest.mark.usefixtures("executables_travel")
def test_what_another_process_has_compiled_is_not_compiled_here(
    compilers: FakeCompilers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiled_there(task: BuildExecutable, module: bytes) -> bytes:
        devices = jax.devices("cpu")[:1]
        made = executables.compile_as(module, task.compile_options, devices)
        return executables.written_executable(made, task.compile_options, devices)

    monkeypatch.setattr(compilers, "executable", compiled_there)
    monkeypatch.setattr(Compilable, "compile", None)
    with jitcount.as_if("tpu:v5e") as emulation:
        np.testing.assert_array_equal(jax.jit(_double)(X), X * 3)
    assert emulation.faithful


def test_what_cannot_be_loaded_is_compiled_here(
    compilers: FakeCompilers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compilers, "executable", lambda *_: b"of another machine")
    with jitcount.as_if("tpu:v5e") as emulation:
        np.testing.assert_array_equal(jax.jit(_double)(X), X * 3)
    assert emulation.faithful


ADDED = THREE_TIMES.replace("f32[3]{0} multiply", "f32[3]{0} frobnicate")
SMALLER = module("%p0 = f32[2]{0} parameter(0)\nROOT %c = f32[2]{0} copy(%p0)")


@pytest.mark.parametrize(
    ("hlo", "reason"),
    [
        (ADDED, "the operation frobnicate"),
        (
            THREE_TIMES.replace("constant(3)", 'custom-call(), custom_call_target="Own"'),
            "a call of Own",
        ),
        (
            SMALLER,
            "the target's program takes tensor<2xf32> and gives tensor<2xf32>, not as here",
        ),
        ("HloModule it\n", "a module without an entry"),
    ],
)
def test_what_is_not_known_is_named_and_runs_as_on_the_cpu(
    hlo: str, reason: str, compilers: FakeCompilers
) -> None:
    compilers.say(hlo)
    with jitcount.as_if("tpu:v5e") as emulation:
        np.testing.assert_array_equal(jax.jit(_double)(X), X * 2)
    (program,) = emulation.programs
    assert (program.faithful, program.reason) == (False, reason)
    assert str(emulation) == (
        "As if on tpu:v5e: 0 of 1 programs computed as there\n"
        f"as on the CPU: _double(float32[3]): {reason}"
    )


DIED = "the compiler was ended by SIGABRT (Aborted)"


def test_a_compiler_that_dies_costs_one_program(compilers: FakeCompilers) -> None:
    with jitcount.as_if("tpu:v5e") as emulation:
        compilers.there = Answer(error=DIED)
        np.testing.assert_array_equal(jax.jit(_double)(X), X * 2)
        compilers.say(THREE_TIMES)
        compilers.here = Answer(error=DIED)
        np.testing.assert_array_equal(jax.jit(lambda x: x * 4)(X), X * 4)
        compilers.here = Answer()
        np.testing.assert_array_equal(jax.jit(lambda x: x * 5)(X), X * 3)
    assert [program.reason for program in emulation.programs] == [
        f"tpu:v5e refuses it: {DIED}",
        f"rewritten, the CPU's compiler refuses it: {DIED}",
        "",
    ]


def test_a_refusal_of_many_lines_is_named_in_one(compilers: FakeCompilers) -> None:
    compilers.there = Answer(error="UNIMPLEMENTED: \nno such thing.\n\nDo:")
    with jitcount.as_if("tpu:v5e") as emulation:
        jax.jit(_double)(X)
    (program,) = emulation.programs
    assert program.reason == "tpu:v5e refuses it: UNIMPLEMENTED: no such thing."


def test_nothing_that_fails_here_reaches_the_user(
    compilers: FakeCompilers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(compilers, "answer", fail)
    with jitcount.as_if("tpu:v5e") as emulation:
        np.testing.assert_array_equal(jax.jit(_double)(X), X * 2)
    assert [program.reason for program in emulation.programs] == ["RuntimeError: two"]


@pytest.mark.usefixtures("compilers")
def test_callbacks_are_named() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        jax.debug.callback(seen.append, x[0])
        return x * 2

    with jitcount.as_if("tpu:v5e") as emulation:
        np.testing.assert_array_equal(jax.jit(f)(X), X * 2)
        jax.effects_barrier()
    reasons = [program.reason for program in emulation.programs if program.function == "f"]
    assert reasons == ["debug_callback calls back into Python"]
    assert len(seen) == 1


@pytest.mark.usefixtures("compilers")
def test_several_kinds_of_callbacks_are_named() -> None:
    def f(x: Any) -> Any:
        jax.debug.callback(lambda _: None, x[0])
        return jax.pure_callback(lambda x: x, X, x) * 2

    with jitcount.as_if("tpu:v5e") as emulation:
        np.testing.assert_array_equal(jax.jit(f)(X), X * 2)
        jax.effects_barrier()
    reasons = [program.reason for program in emulation.programs if program.function == "f"]
    assert reasons == ["debug_callback and pure_callback call back into Python"]


@pytest.mark.usefixtures("compilers")
def test_what_was_lowered_before_says_so() -> None:
    lowered = jax.jit(_double).lower(X)
    with jitcount.as_if("tpu:v5e") as emulation:
        np.testing.assert_array_equal(lowered.compile()(X), X * 2)
    reasons = [program.reason for program in emulation.programs]
    assert reasons == ["it was lowered before the block began; call .lower() inside the block"]


def _line() -> int:
    return sys._getframe(1).f_lineno


@pytest.mark.usefixtures("compilers")
def test_another_kind_inside_is_refused_and_the_same_is_not() -> None:
    with jitcount.as_if("tpu:v5e"):
        line = _line() - 1
        for options, written in (
            ({"target": "cuda:h100"}, "as_if('cuda:h100')"),
            ({"target": "tpu:v5e", "exact_products": True}, _EXACT),
        ):
            with pytest.raises(ValueError, match="as_if") as error:
                jitcount.as_if(**options).__enter__()
            assert str(error.value) == (
                f"{written} while as_if('tpu:v5e') is open, since "
                f"tests/_emulate/test_as_if.py:{line} in {_NAME} in thread MainThread: all threads "
                "of a process compute in one way at a time; end the other block first"
            )
    with jitcount.as_if("tpu:v5e"), jitcount.as_if("tpu:v5e", timeout=1.0) as inner:
        np.testing.assert_array_equal(jax.jit(_double)(X), X * 3)
    assert len(inner.programs) == 1
    with jitcount.as_if("cuda:h100"):
        pass


_NAME = "test_another_kind_inside_is_refused_and_the_same_is_not"
_EXACT = "as_if('tpu:v5e', exact_products=True)"


def test_a_missing_compiler_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "is_installed", lambda _: False)
    plugin = parse("tpu:v5e").chip.plugin
    with pytest.raises(ImportError) as error:
        jitcount.as_if("tpu:v5e")
    assert str(error.value) == (
        f"tpu:v5e needs {plugin.compiler}, which is not installed: {plugin.command}"
    )


@pytest.mark.usefixtures("compilers")
def test_a_block_that_raises_ends_as_any_other() -> None:
    block = jitcount.as_if("tpu:v5e")

    def fail() -> None:
        with block:
            raise RuntimeError("the user's")

    with pytest.raises(RuntimeError, match="the user's"):
        fail()
    np.testing.assert_array_equal(jax.jit(_double)(X), X * 2)


def test_lines_that_round_are_named(compilers: FakeCompilers) -> None:
    x = np.full((2, 2), 1 + 2**-10, np.float32)
    compilers.say(
        module(
            f"{parameters(x)}\nROOT %d = f32[2,2]{{1,0}} dot(%p0, %p0), lhs_contracting_dims={{1}},"
            ' rhs_contracting_dims={0}, metadata={op_name="jit(square)/dot_general" '
            'source_file="/home/me/model.py" source_line=8}'
        )
    )
    with jitcount.as_if("tpu:v5e") as emulation:
        made = jax.jit(lambda x: jnp.dot(x, x))(x)
    np.testing.assert_array_equal(made, np.full((2, 2), 2, np.float32))
    (program,) = emulation.programs
    assert [str(each) for each in program.roundings] == ["model.py:8: dot_general in bfloat16"]
    assert [str(each) for each in emulation.lines()] == ["model.py:8"]
