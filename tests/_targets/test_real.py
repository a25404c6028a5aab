"""The real compilers of TPUs and GPUs, on a machine that has neither."""

import functools
import json
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

import jitcount
from jitcount._suite import transformer
from jitcount._targets.process import CompilerProcess
from jitcount._targets.protocol import Answer, Request
from tests.helpers import python

X = np.ones(3, np.float32)
TPUS = ["tpu:v4", "tpu:v5e", "tpu:v5p", "tpu:v6e", "tpu:7x"]
GPUS = ["cuda:a100", "cuda:h100", "cuda:b200"]
BOTH = ["tpu:v5e", "cuda:h100"]

# What only one compiler writes: tiles of a TPU's registers, the scheduler and queues of a GPU.
MARKS = {"tpu": ["T(128)"], "cuda": ["fingerprint_before_lhs=", '"operation_queue_id"']}


pytestmark = pytest.mark.usefixtures("shared_compilers")


def each(*targets: str) -> pytest.MarkDecorator:
    marked = [pytest.param(t, marks=pytest.mark.aot(t), id=t) for t in targets]
    return pytest.mark.parametrize("target", marked)


def of_three_lines(x: jax.Array) -> tuple[jax.Array, ...]:
    ranked = jnp.sort(x * 2, axis=0)
    summed = jnp.cumsum(x, axis=1)
    return ranked, summed, jax.scipy.special.gammaln(x)


def draws(key: jax.Array) -> jax.Array:
    return jax.random.normal(key, (4,))


def draws_again(key: jax.Array) -> jax.Array:
    return jax.random.normal(key, (4,)) + 1


@each("tpu:v5e")
def test_what_another_program_drew_first_is_no_line_of_this_one(target: str) -> None:
    with jitcount.record([target], profile=True) as log:
        for function in (draws, draws_again):
            jax.jit(function)(jax.random.key(0))
    on, first = log.compiles[-1].on[target], draws_again.__code__.co_firstlineno
    assert {line.line for line in on.lines if line.is_attributed} == {first + 1}


@each(*BOTH)
def test_a_profile_says_which_lines_a_targets_compiler_worked_on(target: str) -> None:
    with jitcount.record([target], profile=True) as log:
        jax.jit(of_three_lines)(np.ones((64, 64), np.float32))
    (found,) = log.compiles
    on, first = found.on[target], of_three_lines.__code__.co_firstlineno
    assert on.profile is not None
    here = {line.line - first: line for line in found.lines if line.operations}
    there = {line.line - first: line for line in on.lines if line.operations}
    lines = {number: line for number, line in there.items() if line.is_attributed}
    assert set(lines) == {1, 2, 3}
    # XLA:GPU names its sorts, and not its fusions: their time is in the last row, and a note.
    timed = {number for number, line in lines.items() if line.compile_s}
    assert timed == ({1, 2, 3} if target.startswith("tpu") else {1})
    said = [note.partition(" for ")[0] for note in on.profile.notes]
    gpus = ["XLA:GPU does not say which kernel it compiled"]
    assert said == ([] if target.startswith("tpu") else gpus)
    assert not on.lines[-1].is_attributed
    assert sum(line.compile_s for line in on.lines) == pytest.approx(on.compile_s)
    assert {line.trace_s for line in on.lines} == {0}
    assert sum(line.operations for line in on.lines) == found.operations
    # The line of the sort is lowered alike for all of them.
    assert there[1].operations == here[1].operations
    assert {phase.name for phase in on.profile.phases} >= {"XLA's passes", "code generation"}


@each(*BOTH)
def test_the_first_case_compiles_as_often_as_on_the_device_and_by_its_compiler(
    target: str, capfd: pytest.CaptureFixture[str]
) -> None:
    jax.devices()
    capfd.readouterr()
    with jitcount.record(targets=[target, "cpu"], keep_hlo=True) as log:
        jitcount.cache_independent_count(X, np.ones(4, np.float32))
    assert capfd.readouterr() == ("", "")
    assert log.counts() == {"sum": 2, "add": 1}
    assert [c.on[target].error for c in log.compiles] == [None, None, None]
    assert len({c.on[target].fingerprint for c in log.compiles}) == 3
    for compiled in log.compiles:
        theirs, ours = compiled.on[target].hlo or "", compiled.on["cpu"].hlo or ""
        assert theirs.startswith(f"HloModule jit_{compiled.function}")
        for platform, marks in MARKS.items():
            for mark in marks:
                assert (mark in theirs) is target.startswith(platform)
                assert mark not in ours


@each("tpu:v5e")
def test_a_tpus_compiler_gives_all_figures(target: str) -> None:
    with jitcount.record(targets=[target]) as log:
        jax.jit(jnp.dot)(np.ones((256, 256), np.float32), np.ones((256, 256), np.float32))
    on = log.compiles[0].on[target]
    assert (on.argument_bytes, on.output_bytes) == (2 * 4 * 256**2, 4 * 256**2)
    assert on.code_bytes
    assert on.flops == pytest.approx(2 * 256**3, rel=0.1)
    assert 0 < (on.estimated_s or 0) < 1e-3


@each("cuda:h100")
def test_a_gpus_compiler_gives_sizes_and_no_costs(target: str) -> None:
    with jitcount.record(targets=[target]) as log:
        jax.jit(jnp.dot)(np.ones((256, 256), np.float32), np.ones((256, 256), np.float32))
    on = log.compiles[0].on[target]
    assert (on.argument_bytes, on.output_bytes) == (2 * 4 * 256**2, 4 * 256**2)
    assert (on.code_bytes, on.flops, on.estimated_s) == (None, None, None)


@functools.partial(jax.jit, static_argnums=1)
def power(x: jax.Array, n: int) -> jax.Array:
    return x**n


def float64() -> None:
    before = jax.config.values["jax_enable_x64"]
    jax.config.update("jax_enable_x64", val=True)
    try:
        jax.jit(lambda x: jnp.linalg.cholesky(x) @ x)(np.eye(3))
    finally:
        jax.config.update("jax_enable_x64", before)


PROGRAMS: dict[str, Callable[[], object]] = {
    "float64": float64,
    "key": lambda: jax.jit(lambda key: jax.random.normal(key, (3,)))(jax.random.key(0)),
    "donated": lambda: jax.jit(lambda x: x + 1, donate_argnums=0)(jax.device_put(X)),
    "static": lambda: [power(X, 2), power(X, 3)],
    "leaves": lambda: jax.jit(lambda t: jax.tree.map(jnp.negative, t))(
        {f"leaf {n}": np.ones(2, np.float32) for n in range(500)}
    ),
    "unlowered": lambda: jax.jit(jnp.linalg.eig)(np.eye(3, dtype=np.float32)),
}

EXPECTED = {
    "unlowered": "JAX cannot lower it for {platform}: MLIR translation rule for primitive 'eig' "
    "not found for platform {platform}",
}


@each(*BOTH)
@pytest.mark.parametrize("program", ["float64", "key", "donated", "static", "leaves"])
def test_programs_of_all_kinds(target: str, program: str) -> None:
    with jitcount.record(targets=[target]) as log:
        PROGRAMS[program]()
    assert log.compiles
    assert {c.on[target].error for c in log.compiles} <= {None, EXPECTED.get(program)}
    if program == "donated":
        assert log.compiles[-1].on[target].aliased_bytes == log.compiles[-1].on[target].output_bytes
    if program in EXPECTED:
        assert log.compiles[-1].on[target].error == EXPECTED[program]


def ordered(x: Any) -> Any:
    return io_callback(np.sin, x, x @ x, ordered=True)


def printed(x: Any) -> Any:
    jax.debug.print("{}", jnp.sum(x @ x))
    return x


def several(x: Any) -> Any:
    return jax.pure_callback(lambda v: (v, v[0]), (x, x[0]), x @ x, vmap_method="sequential")


def unneeded(x: Any) -> Any:
    return io_callback(np.sin, jnp.float32(0), jnp.sum(x @ x)) * 0 + jnp.sum(x)


CALLBACKS: dict[str, Callable[[Any], Any]] = {
    "ordered": ordered,
    "printed": printed,
    "several": several,
    "unneeded": unneeded,
    "in-scan": lambda x: jax.lax.scan(lambda c, a: (ordered(c), a), x, x)[0],
    "vmap": lambda x: jax.vmap(several)(x[None]),
}

# What each compiler is left with: where the program hands its values over, and takes others.
HANDED_OVER = {"tpu": " send(", "cuda": 'custom_call_target="xla_ffi_python_gpu_callback"'}
# The product that only the callback needs.
PRODUCT = {"tpu": " convolution(", "cuda": "dot"}


@each(*BOTH)
def test_programs_with_callbacks_are_compiled_with_all_that_the_callbacks_need(target: str) -> None:
    x = np.ones((64, 64), np.float32)
    with jitcount.record(targets=[target], keep_hlo=True) as log:
        for name, program in CALLBACKS.items():
            program.__name__ = name
            jax.jit(program)(x)
    jax.effects_barrier()
    found = {c.function: c.on[target] for c in log.compiles if c.function in CALLBACKS}
    assert found.keys() == CALLBACKS.keys()
    platform = target.partition(":")[0]
    for on in found.values():
        assert on.error is None
        assert [(each.count, each.call_site.file) for each in on.left_out] == [(1, __file__)]
        assert HANDED_OVER[platform] in (on.hlo or "")
        assert PRODUCT[platform] in (on.hlo or "")


@each("tpu:v5e")
def test_a_program_that_jax_has_no_rule_for_says_so(target: str) -> None:
    with jitcount.record(targets=[target]) as log:
        PROGRAMS["unlowered"]()
    error = log.compiles[-1].on[target].error
    assert error == EXPECTED["unlowered"].format(platform="tpu")


@each("tpu:v5e")
def test_a_program_that_does_not_fit_is_refused_in_the_compilers_words(target: str) -> None:
    large = jax.ShapeDtypeStruct((1 << 34,), np.float32)
    with jitcount.record(targets=[target]) as log:
        jax.jit(lambda x: x + 1).lower(large).compile()
        jax.jit(lambda x: x + 2)(X)
    refused, fine = (c.on[target] for c in log.compiles)
    assert refused.error is not None
    assert refused.error.startswith("RESOURCE_EXHAUSTED: ")
    assert "exceeds available HBM" in refused.error or "in memory space hbm" in refused.error
    assert fine.error is None


@each(*BOTH)
def test_a_compiler_that_is_killed_mid_way_takes_one_compile_with_it(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = CompilerProcess.ask

    def killed(self: CompilerProcess, request: Request, timeout: float) -> Answer:
        if b"jit_step" in request.block:
            threading.Timer(0.2, os.kill, (self.pid, signal.SIGKILL)).start()
        return ask(self, request, timeout)

    monkeypatch.setattr(CompilerProcess, "ask", killed)
    with jitcount.record(targets=[target]) as log:
        jax.jit(lambda x: x + 1)(X)
        transformer.step(transformer.init(), transformer.tokens())
        jax.jit(lambda x: x + 2)(X)
    before, step, after = (c.on[target].error for c in log.compiles)
    assert (before, after) == (None, None)
    assert step is not None
    assert step.partition(";")[0] == "the compiler was ended by SIGKILL (Killed)"


@pytest.mark.parametrize(
    "targets",
    [
        pytest.param(TPUS, marks=pytest.mark.aot(*TPUS), id="tpu"),
        pytest.param(GPUS, marks=pytest.mark.aot(*GPUS), id="cuda"),
    ],
)
def test_a_training_step_compiles_everywhere(targets: list[str]) -> None:
    with jitcount.record(targets=targets) as log:
        transformer.step(transformer.init(), transformer.tokens())
    on = log.compiles[0].on
    assert list(on) == targets
    assert {result.error for result in on.values()} == {None}
    weights = sum(leaf.nbytes for leaf in jax.tree.leaves(transformer.init()))
    assert all((result.argument_bytes or 0) >= weights for result in on.values())


SHARDED = """
import json, sys
import jax, jitcount
from jitcount._suite import transformer

sizes = transformer.Sizes(batch=2 * jax.device_count())
mesh = transformer.mesh_of(jax.devices(), model=2)
step, state, put = transformer.sharded_step(mesh, sizes)
with jitcount.record(targets=sys.argv[1:], keep_hlo=True) as log:
    step.lower(state, put(transformer.tokens(sizes))).compile()
(found,) = (c.on for c in log.compiles if c.function == "_step")
print(json.dumps({
    name: [on.error, f"num_partitions={jax.device_count()}" in (on.hlo or ""),
           "all-reduce" in (on.hlo or "")]
    for name, on in found.items()
}))
"""


def sharded(devices: int, *targets: str) -> dict[str, list[Any]]:
    done = python("-c", SHARDED, *targets, env={"JAX_NUM_CPU_DEVICES": str(devices)})
    assert done.returncode == 0, done.stderr
    found: dict[str, list[Any]] = json.loads(done.stdout)
    return found


@each(*BOTH)
def test_a_training_step_over_8_devices_compiles_for_8_chips(target: str) -> None:
    too_small = {"tpu:v5e": "tpu:v5e:2x2", "cuda:h100": "cuda:h100:4"}[target]
    reason = f"it is sharded over 8 devices, and {too_small} has 4"
    assert sharded(8, target, too_small) == {
        target: [None, True, True],
        too_small: [reason, False, False],
    }


@pytest.mark.aot("tpu:v5e")
def test_a_training_step_over_256_devices_compiles_for_a_whole_pod() -> None:
    assert sharded(256, "tpu:v5e:16x16") == {"tpu:v5e:16x16": [None, True, True]}


@pytest.mark.aot(*TPUS)
def test_a_number_of_chips_is_a_slice_that_the_compiler_knows() -> None:
    eight = [f"{chip}:4" if chip == "tpu:7x" else f"{chip}:8" for chip in TPUS]
    assert sharded(8, *eight) == {target: [None, True, True] for target in eight}
