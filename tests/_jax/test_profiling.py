"""What a profile needs of JAX is where we look for it; a release that moves it fails here."""

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import jitcount
from jitcount._jax import profiling
from jitcount._jax.compilers import COMPILERS


def compiled(
    function: Callable[..., Any], *arguments: object
) -> tuple[list[profiling.Event], object]:
    lowered = jax.jit(function).lower(*arguments)
    session = profiling.watch()
    executable = lowered.compile().runtime_executable()
    return profiling.events_in(profiling.watched(session)), executable


def several(x: jax.Array) -> list[jax.Array]:
    return [jnp.sort(x), jnp.cumsum(x), jnp.where(x > 1, jnp.exp(x), jnp.log1p(x))]


def test_xla_tells_its_phases_and_its_units() -> None:
    events, _ = compiled(several, jnp.ones(100))
    (compiler,) = [c for c in COMPILERS if any(e.name.startswith(c.known_by) for e in events)]
    for pattern in (compiler.passes, compiler.generation):
        assert any(pattern.match(event.name) for event in events), pattern
    assert any(event.name == compiler.machine_code for event in events)


def test_each_file_of_machine_code_has_an_event_that_made_it() -> None:
    events, executable = compiled(several, jnp.ones(101))
    files = profiling.object_files(executable)
    made = [event for event in events if event.name == COMPILERS[0].machine_code]
    assert len(made) >= len(files) > 1
    assert all(size > 0 for functions in files for size in functions.values())


def test_the_optimised_program_says_where_it_comes_from() -> None:
    _, executable = compiled(several, jnp.ones(102))
    text = profiling.optimised_text(executable)
    assert "StackFrames" in text or "source_line=" in text


def test_a_trace_of_the_programs_own_goes_on(tmp_path: object) -> None:
    jax.profiler.start_trace(str(tmp_path))
    session = profiling.watch()
    jax.jit(several).lower(jnp.ones(103)).compile()
    with pytest.raises(profiling.NotWatchedError) as refused:
        profiling.watched(session)
    assert str(refused.value) == (
        "a jax.profiler trace of the program's own was under way, which has the compiler's time"
    )
    jax.profiler.stop_trace()  # raises where its session is gone


def test_a_session_prints_nothing_and_imports_no_tensorflow(
    capfd: pytest.CaptureFixture[str],
) -> None:
    profiling.watched(profiling.watch())
    assert capfd.readouterr() == ("", "")
    assert not [name for name in sys.modules if name.startswith("tensorflow")]


# --- While JAX compiles ---------------------------------------------------------------------------


def test_the_frames_show_the_jaxpr_the_module_and_the_executable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: dict[str, Any] = {}

    def noted(name: str) -> Callable[..., Any]:
        read: Callable[..., Any] = getattr(profiling, name)

        def note(frame: Any) -> Any:
            seen[name] = read(frame)
            return seen[name]

        return note

    for name in ("lowered_jaxpr", "lowered_text", "compiled_executable"):
        monkeypatch.setattr(profiling, name, noted(name))
    with jitcount.record(profile=True):
        jax.jit(several)(jnp.ones(104))
    primitives = {equation.primitive.name for equation in seen["lowered_jaxpr"].jaxpr.eqns}
    assert primitives & {"jit", "pjit"}
    assert '"stablehlo.sort"' in seen["lowered_text"]
    assert __file__ in seen["lowered_text"]
    assert profiling.optimised_text(seen["compiled_executable"]).startswith("HloModule jit_several")
