"""What is carried to a compiler in another process: here the CPU's own, which every machine has."""

import functools
import json
import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.experimental
import jax.numpy as jnp
import msgspec
import numpy as np
import pytest

import jitcount
from jitcount._explain.compile import Compile
from jitcount._ledger.files import decode, encode
from jitcount._observe.in_flight import InFlightCompile
from jitcount._record.log import CompileLog
from jitcount._registry import registry
from jitcount._targets import session
from jitcount._targets.lowering import lower_for_target
from jitcount._targets.names import parse
from jitcount._targets.result import OnTarget
from tests.helpers import python

X = np.ones(3, np.float32)


pytestmark = pytest.mark.usefixtures("shared_compilers")


def carried(program: Callable[[], object], **options: Any) -> CompileLog:
    with jitcount.record(targets=["cpu"], **options) as log:
        program()
    return log


def errors(log: CompileLog) -> dict[str, str | None]:
    return {c.function: c.on["cpu"].error for c in log.compiles}


def test_every_program_is_compiled_for_the_target_eager_ones_too() -> None:
    log = carried(lambda: jitcount.cache_independent_count(X, np.ones(4, np.float32)))
    assert [(c.function, c.on["cpu"].error) for c in log.compiles] == [
        ("sum", None),
        ("sum", None),
        ("add", None),
    ]
    first, second, _ = (c.on["cpu"] for c in log.compiles)
    assert (first.argument_bytes, second.argument_bytes, first.output_bytes) == (12, 16, 4)
    assert first.compile_s > 0
    assert first.hlo is None


def test_counts_and_causes_are_the_same_as_without_targets() -> None:
    def program() -> object:
        return [jitcount.cache_independent_count(X, np.ones(n, np.float32)) for n in (3, 4, 3)]

    log = carried(program)
    jax.clear_caches()
    with jitcount.record() as plain:
        program()
    assert log.counts() == plain.counts() == {"sum": 2, "add": 1}
    assert not any(c.on for c in plain.compiles)


def test_what_jitcount_lowers_is_not_counted_by_another_recorder() -> None:
    with jitcount.record() as outer:
        carried(lambda: jax.jit(jnp.sin)(X))
    assert outer.counts() == {"sin": 1}


def test_the_optimised_program_is_kept_on_request() -> None:
    log = carried(lambda: jax.jit(jnp.sin)(X), keep_hlo=True)
    hlo = log.compiles[0].on["cpu"].hlo
    assert hlo is not None
    assert hlo.startswith("HloModule jit_sin")


def test_a_float64_program() -> None:
    before = jax.config.values["jax_enable_x64"]
    jax.config.update("jax_enable_x64", val=True)
    try:
        log = carried(lambda: jax.jit(lambda x: jnp.linalg.cholesky(x) @ x)(np.eye(3)))
    finally:
        jax.config.update("jax_enable_x64", before)
    assert errors(log) == {"<lambda>": None}
    assert log.compiles[0].on["cpu"].argument_bytes == 9 * 8


def test_a_float64_program_under_a_context_manager() -> None:
    experimental: Any = jax.experimental  # where it was before 0.8
    enable = jax.enable_x64 if hasattr(jax, "enable_x64") else experimental.enable_x64
    with enable(True):  # noqa: FBT003
        log = carried(lambda: jax.jit(lambda x: jnp.sum(jnp.sort(x)) / 3)(np.ones(3)))
    assert errors(log) == {"<lambda>": None}
    assert log.compiles[0].on["cpu"].output_bytes == 8


def test_a_prng_key_argument() -> None:
    key = jax.random.key(0)
    log = carried(lambda: jax.jit(lambda key: jax.random.normal(key, (3,)))(key))
    assert errors(log) == {"<lambda>": None}


def test_a_donated_argument_lies_in_the_output() -> None:
    x = jax.device_put(X)
    log = carried(lambda: jax.jit(lambda x: x + 1, donate_argnums=0)(x))
    on = log.compiles[0].on["cpu"]
    assert (on.error, on.argument_bytes, on.aliased_bytes) == (None, 12, 12)
    assert on.memory_bytes == 12 + (on.temporary_bytes or 0) + (on.code_bytes or 0)


def test_a_static_argument() -> None:
    @functools.partial(jax.jit, static_argnums=1)
    def power(x: jax.Array, n: int) -> jax.Array:
        return x**n

    log = carried(lambda: [power(X, 2), power(X, 3)])
    assert [c.on["cpu"].error for c in log.compiles] == [None, None]
    assert len({c.on["cpu"].fingerprint for c in log.compiles}) == 2


def test_a_pytree_of_500_leaves() -> None:
    tree = {f"leaf {n}": np.ones(2, np.float32) for n in range(500)}
    log = carried(lambda: jax.jit(lambda tree: jax.tree.map(lambda x: 2 * x, tree))(tree))
    assert errors(log) == {"<lambda>": None}
    assert log.compiles[0].on["cpu"].argument_bytes == 500 * 8


def test_a_program_without_arguments_and_one_with_constants() -> None:
    constants = np.arange(1000, dtype=np.float32)
    log = carried(
        lambda: [jax.jit(lambda: jnp.zeros(3))(), jax.jit(lambda x: x + constants)(np.float32(1))]
    )
    assert [c.on["cpu"].error for c in log.compiles] == [None, None]


def test_an_argument_that_is_not_used() -> None:
    log = carried(lambda: jax.jit(lambda x, _: 2 * x)(X, np.ones(7)))
    assert log.compiles[0].on["cpu"].argument_bytes == 12


def test_gradients_and_vmap() -> None:
    f = jax.jit(lambda x: jnp.sum(x * x))
    log = carried(lambda: [jax.grad(f)(X), jax.vmap(f)(X[None])])
    assert set(errors(log).values()) == {None}


def test_a_program_that_was_compiled_ahead_of_time() -> None:
    log = carried(lambda: jax.jit(lambda x: x + 1).lower(X).compile())
    assert errors(log) == {"<lambda>": None}


def test_a_program_that_was_lowered_before_the_block_says_so() -> None:
    lowered = jax.jit(lambda x: x + 1).lower(X)
    assert errors(carried(lowered.compile)) == {
        "<lambda>": "not carried over: it was lowered before the block began, for this machine "
        "only; call .lower() inside the block, or jax.clear_caches() before it"
    }


@pytest.mark.two_devices
def test_the_same_program_on_a_second_device_is_the_same_for_the_target() -> None:
    f = jax.jit(lambda x: x + 1)
    log = carried(lambda: [f(jax.device_put(X, device)) for device in jax.devices()[:2]])
    first, second = (c.on["cpu"] for c in log.compiles)
    assert first is second
    assert first.error is None


def heavy(x: Any) -> Any:
    return jnp.cumsum(x) * x


def io(x: Any, *, ordered: bool = False) -> Any:
    return jax.experimental.io_callback(np.sin, x, heavy(x), ordered=ordered)


def printed(x: Any) -> Any:
    jax.debug.print("{}", heavy(x))
    return x


def several(x: Any) -> Any:
    kinds = (x, x[0])
    return jax.pure_callback(lambda v: (v, v[0]), kinds, heavy(x), vmap_method="sequential")


in_order = functools.partial(io, ordered=True)

CALLBACKS: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "io": ("io_callback", "io", io),
    "ordered": ("io_callback", "io", in_order),
    "several": ("pure_callback", "several", several),
    "in-scan": ("io_", "io", lambda x: jax.lax.scan(lambda c, a: (io(c), a), x, x)),
    "ordered-in-scan": ("io_", "io", lambda x: jax.lax.scan(lambda c, a: (in_order(c), a), x, x)),
    "in-a-branch": ("io_", "io", lambda x: jax.lax.cond(x[0] > 0, io, heavy, x)),
    "vmap": ("pure_", "several", lambda x: jax.vmap(several)(x[None])),
    "print": ("debug_", "printed", printed),
    "ordered-print": ("debug_", "<lambda>", lambda x: jax.debug.print("{}", x, ordered=True)),
    "debug": ("debug_", "<lambda>", lambda x: jax.debug.callback(lambda _: None, x)),
}


@pytest.mark.parametrize("name", CALLBACKS)
def test_callbacks_to_the_host_keep_their_place_and_are_named(name: str) -> None:
    kind, function, program = CALLBACKS[name]
    log = carried(lambda: jax.jit(program)(X), keep_hlo=True)
    jax.effects_barrier()
    assert set(errors(log).values()) == {None}
    # The callback may compile something too.
    (on,) = (c.on["cpu"] for c in log.compiles if c.on["cpu"].left_out)
    (left_out,) = on.left_out
    site = left_out.call_site
    assert left_out.kind.startswith(kind)
    assert (left_out.count, site.file, site.function) == (1, __file__, function)
    assert on.hlo is not None
    assert on.hlo.count('custom_call_target="xla_ffi_') == 1


def test_callbacks_are_counted_by_line() -> None:
    def f(x: Any) -> Any:
        for _ in range(3):
            x = io(x)
        return printed(x)

    log = carried(lambda: jax.jit(f)(X))
    found = [(each.kind[:5], each.count) for each in log.compiles[-1].on["cpu"].left_out]
    assert found == [("io_ca", 3), ("debug", 1)]


def test_the_same_program_from_two_lines_names_each_its_own() -> None:
    def one(x: Any) -> Any:
        return jax.pure_callback(np.sin, x, x)

    def two(x: Any) -> Any:
        return jax.pure_callback(np.sin, x, x)

    two.__name__ = "one"
    log = carried(lambda: [jax.jit(f)(X) for f in (one, two)])
    first, second = (c.on["cpu"] for c in log.compiles)
    assert first.fingerprint == second.fingerprint
    lines = [on.left_out[0].call_site.line for on in (first, second)]
    assert lines == [f.__code__.co_firstlineno + 1 for f in (one, two)]


def test_a_program_with_a_callback_has_the_same_fingerprint_in_every_block() -> None:
    def program() -> None:
        jax.jit(several)(X)

    first = carried(program).compiles[0].on["cpu"].fingerprint
    jax.clear_caches()
    assert carried(program).compiles[0].on["cpu"].fingerprint == first


def test_a_print_from_inside_still_prints_and_the_targets_do_not(
    capfd: pytest.CaptureFixture[str],
) -> None:
    log = carried(lambda: jax.jit(lambda x: jax.debug.print("{}", x))(1.5))
    jax.effects_barrier()
    assert capfd.readouterr() == ("1.5\n", "")
    assert errors(log) == {"<lambda>": None}


def test_a_programs_compiler_options_go_with_it() -> None:
    jitted = jax.jit(lambda x: x + 1, compiler_options={"xla_cpu_enable_fast_math": True})
    assert errors(carried(lambda: jitted(X))) == {"<lambda>": None}


def test_what_came_from_the_persistent_cache_is_compiled_for_the_target(
    disk_cache: None,
) -> None:
    jax.jit(jnp.sin)(X)
    jax.clear_caches()
    log = carried(lambda: jax.jit(jnp.sin)(X))
    assert [(c.from_disk, c.on["cpu"].error) for c in log.compiles] == [(True, None)]


def test_nothing_is_kept_of_a_program_when_the_block_is_over() -> None:
    log = carried(lambda: jax.jit(jnp.sin)(X))
    assert log._seen[0][0].lowered_program is None
    assert registry.program_consumers == ()
    assert len(registry.listener._lowerings_by_module) == 0


def test_a_compile_is_still_plain_data() -> None:
    log = carried(lambda: jax.jit(jnp.sin)(X), keep_hlo=True)
    (compiled,) = log.compiles
    read = decode(encode(compiled), Compile)
    assert read == compiled
    assert len(read.on["cpu"].fingerprint) == 32
    assert hash(compiled)
    assert msgspec.structs.replace(compiled, function="cos").on is compiled.on


SHARDED = """
import json, jax, jitcount
from jitcount._suite import transformer

step, state, put = transformer.sharded_step(transformer.mesh_of(jax.devices(), 2))
with jitcount.record(targets=["cpu"], keep_hlo=True) as log:
    step(state, put(transformer.tokens()))
(on,) = (c.on["cpu"] for c in log.compiles if c.function == "_step")
print(json.dumps([on.error, "num_partitions=8" in on.hlo, "all-reduce" in on.hlo]))
"""


@pytest.mark.thorough
def test_a_sharded_program_is_sharded_over_as_many_devices() -> None:
    done = python("-c", SHARDED, env={"JAX_NUM_CPU_DEVICES": "8"})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [None, True, True]


def test_a_program_whose_compile_was_under_way_says_so() -> None:
    with jitcount.record(targets=["cpu"]) as log:
        log.add(InFlightCompile(function="step"))
    assert log.compiles[0].on["cpu"].error == (
        "not carried over: the block began while it was being compiled"
    )


def test_a_compile_that_was_handed_out_does_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    def later(*arguments: Any, **options: Any) -> Any:
        assert go_on.wait(60)
        return lower_for_target(*arguments, **options)

    monkeypatch.setattr("jitcount._targets.session.lower_for_target", later)
    with jitcount.record(targets=["cpu:two", "cpu:one"]) as log:
        jax.jit(jnp.sin)(X)
        (early,) = log.compiles
        assert log.compiles[0] is early  # as long as no result has come
        go_on.set()
    (late,) = log.compiles
    assert early.on == {}
    assert {name: on.error for name, on in late.on.items()} == {"cpu:two": None, "cpu:one": None}
    assert msgspec.structs.replace(late, on={}) == early
    assert log.compiles[0] is late


def test_results_are_in_the_order_of_the_targets_whenever_they_come() -> None:
    targets = [parse(name) for name in ("cpu:c", "cpu:a", "cpu:b")]
    block = session.Session(targets, keep_hlo=False, timeout=1)
    program = session.TargetResults()
    seen = []
    for name in ("cpu:b", "cpu:c", "cpu:a"):
        block._store(program, OnTarget(target=name))
        seen.append(program.on)
    assert [list(on) for on in seen] == [
        ["cpu:b"],
        ["cpu:c", "cpu:b"],
        ["cpu:c", "cpu:a", "cpu:b"],
    ]
