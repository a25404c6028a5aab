"""Programs over eight devices through the real compilers of TPUs and GPUs."""

import json
from pathlib import Path

import jax
import pytest

from tests.helpers import jitcount as command
from tests.helpers import python

TARGETS = [
    pytest.param(target, marks=pytest.mark.aot(target), id=target)
    for target in ("tpu:v5e", "cuda:h100")
]
EIGHT = {"JAX_NUM_CPU_DEVICES": "8"}

# What each gives is set beside the CPU's own; products are exact, so that both must agree.
PROGRAM = """
import json, sys
from dataclasses import replace

import jax, jax.numpy as jnp, numpy as np
from jax import lax, shard_map
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from jitcount._emulate.arithmetic import EXACT
from jitcount._emulate.as_if import emulated_here
from jitcount._emulate.emulator import Emulator
from jitcount._targets.names import parse

row = Mesh(np.array(jax.devices()), ("x",))
grid = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
backwards = Mesh(np.array(jax.devices()[::-1]), ("x",))
some = Mesh(np.array(jax.devices()[2:6]), ("x",))
r = np.random.default_rng(0)
x, y = (r.normal(size=s).astype(np.float32) for s in ((64, 128), (128, 32)))
RING = [(i, (i + 1) % 8) for i in range(8)]

def put(value, *axes, mesh=row):
    return jax.device_put(value, NamedSharding(mesh, P(*axes)))

def mapped(f, given=P("x"), made=P("x"), mesh=row):
    return jax.jit(shard_map(f, mesh=mesh, in_specs=given, out_specs=made, check_vma=False))

def loss(weights, x):
    for weight in weights:
        x = jax.nn.gelu(x @ weight)
    return jnp.mean(x**2)

def step(weights, x):
    value, slopes = jax.value_and_grad(loss)(weights, x)
    return jax.tree.map(lambda w, s: w - 0.1 * s, weights, slopes), value

def train():
    weights = [put(0.1 * r.normal(size=(64, 64)).astype(np.float32), "x") for _ in range(3)]
    where = jax.tree.map(lambda w: w.sharding, weights)
    jitted = jax.jit(step, donate_argnums=0, out_shardings=(where, None))
    made = jitted(weights, put(x[:, :64], "x"))
    assert weights[0].is_deleted()
    return made

programs = {
    "psum": lambda: mapped(lambda x: lax.psum(x, "x"), made=P())(put(x, "x")),
    "all_gather": lambda: mapped(
        lambda x: lax.all_gather(x, "x", tiled=True), made=P())(put(x, "x")),
    "ppermute": lambda: mapped(lambda x: lax.ppermute(x, "x", RING))(put(x, "x")),
    "psum_scatter": lambda: mapped(
        lambda x: lax.psum_scatter(x, "x", scatter_dimension=1, tiled=True))(put(x, "x")),
    "all_to_all": lambda: mapped(lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True))(put(x, "x")),
    "axis_index": lambda: mapped(lambda x: x + lax.axis_index("x"), mesh=backwards)(
        put(x, "x", mesh=backwards)),
    "some devices": lambda: mapped(lambda x: lax.pmax(x, "x"), made=P(), mesh=some)(
        put(x, "x", mesh=some)),
    "bfloat16": lambda: mapped(
        lambda x: lax.psum(x.astype("bfloat16"), "x"), made=P())(put(x, "x")),
    "loop": lambda: mapped(lambda x: lax.fori_loop(
        0, 3, lambda i, x: lax.ppermute(x, "x", RING) + 1, x))(put(x, "x")),
    "contracted": lambda: jax.jit(jnp.matmul)(put(x, None, "x"), put(y, "x")),
    "grid": lambda: jax.jit(jnp.matmul)(put(x, "x", "y", mesh=grid), put(y, "y", mesh=grid)),
    "mean": lambda: jax.jit(lambda x: (x - x.mean()) / x.std())(put(x, "x")),
    "moved": lambda: jax.jit(
        lambda x: x.T * 2, out_shardings=NamedSharding(row, P("x")))(put(x, "x")),
    "made": lambda: jax.jit(
        lambda: jnp.arange(64.0) * 2, out_shardings=NamedSharding(row, P("x")))(),
    "rolled": lambda: jax.jit(lambda x: jnp.roll(x, 5, 0))(put(x, "x")),
    "pmap": lambda: jax.pmap(lambda x: lax.psum(x, "i") + x, axis_name="i")(x.reshape(8, 8, 128)),
    "eager": lambda: put(x, "x") @ put(y),
    "trained": train,
}
emulator = replace(Emulator.for_target(parse(sys.argv[1]), 600.0), arithmetic=EXACT)
found = {}
for name, program in programs.items():
    r = np.random.default_rng(1)
    here = jax.tree.leaves(program())
    r = np.random.default_rng(1)
    with emulated_here(emulator) as emulation:
        there = jax.tree.leaves(program())
    off = max(float(np.abs(np.float64(a) - np.float64(b)).max()) for a, b in zip(here, there))
    laid_out = all(a.sharding.is_equivalent_to(b.sharding, a.ndim) for a, b in zip(here, there))
    reasons = sorted({each.reason for each in emulation.programs} - {""})
    found[name] = [bool(emulation.programs), reasons, laid_out, off < 1e-4]
print(json.dumps(found))
"""


@pytest.mark.parametrize("target", TARGETS)
def test_sharded_programs_are_carried_over(target: str, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    done = python(str(script), target, env=EIGHT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if jax.__version_info__ < (0, 8):  # there it compiles in a way of its own
        assert found.pop("pmap")[1] == [
            "not carried over: JAX's frames do not show how it is compiled, as under jax.pmap"
        ]
    names = {"psum", "all_gather", "ppermute", "psum_scatter", "all_to_all", "grid", "trained"}
    assert names <= set(found)
    assert {name: each for name, each in found.items() if each != [True, [], True, True]} == {}


ROUNDED = """
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), ("x",))
x = jax.device_put(np.full((16, 16), 0.1, np.float32), NamedSharding(mesh, P(None, "x")))
print(float(jax.jit(lambda x: x @ x.T)(x)[0, 0]))
"""


@pytest.mark.aot("tpu:v5e")
def test_products_of_sharded_arrays_are_rounded(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(ROUNDED)
    done = command("run", "--as-if", "tpu:v5e", str(script), env=EIGHT)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(16 * 0.10009765625**2, rel=1e-6)
    assert "programs computed as there" in done.stderr
    assert "as on the CPU" not in done.stderr


@pytest.mark.aot("tpu:v5e")
def test_more_devices_than_the_target_has_are_named(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(ROUNDED)
    done = command("run", "--as-if", "tpu:v5e:2x2", str(script), env=EIGHT)
    assert done.returncode == 0, done.stderr
    assert (
        "tpu:v5e:2x2 refuses it: it is sharded over 8 devices, and tpu:v5e:2x2 has 4"
        in " ".join(done.stderr.split())
    )
