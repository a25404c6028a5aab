"""What a profile needs of JAX is where we look for it; a release that moves it fails here."""

import contextlib
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jaxlib import _profiler  # type: ignore[attr-defined]

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


class GivesWay:
    """Ends our session, as the profiler of a block does."""

    def __init__(self) -> None:
        self.ended: list[bytes] = []
        self.session = profiling.watch(self)

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        self.ended.append(profiling.watched(self.session))
        yield


def test_ours_ends_before_a_trace_of_the_programs_own_begins(tmp_path: Path) -> None:
    before = dict(vars(_profiler))
    start_trace = jax.profiler.start_trace  # as a program may hold it
    ours = GivesWay()
    start_trace(str(tmp_path))
    jax.jit(several).lower(jnp.ones(105)).compile()
    jax.profiler.stop_trace()  # raises where there were two sessions at once
    assert [type(ended) for ended in ours.ended] == [bytes]
    assert dict(vars(_profiler)) == before
    (written,) = tmp_path.rglob("*.xplane.pb")
    names = {event.name for event in profiling.events_in(written.read_bytes())}
    assert any(name.startswith(COMPILERS[0].known_by) for name in names)


def test_ours_ends_before_a_server_of_the_programs_own_begins() -> None:
    ours = GivesWay()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    jax.profiler.start_server(port)
    try:
        assert len(ours.ended) == 1
        with pytest.raises(profiling.NotWatchedError) as refused:
            profiling.watch(contextlib.nullcontext)
        assert str(refused.value) == (
            "a jax.profiler server of the program's own is running, which may be asked for a trace "
            "at any time: the compiler's time is not known"
        )
    finally:
        jax.profiler.stop_server()
    profiling.watched(GivesWay().session)


def test_a_stand_in_of_the_programs_own_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = GivesWay()
    stand_in = object()
    monkeypatch.setattr(_profiler, "ProfilerSession", stand_in)
    profiling.watched(ours.session)
    assert _profiler.ProfilerSession is stand_in
    monkeypatch.setattr(_profiler, "ProfilerSession", ours.session.hooks["ProfilerSession"][0])


def test_a_session_that_does_not_start_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_options: object) -> None:
        raise RuntimeError("no memory")

    monkeypatch.setattr(_profiler, "ProfilerSession", full)
    with pytest.raises(profiling.NotWatchedError) as refused:
        GivesWay()
    assert str(refused.value) == "the profiler did not start: no memory"
    assert _profiler.ProfilerSession is full


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
