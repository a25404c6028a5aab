"""Two shardings are one for us where they are one for JAX; on eight devices."""

from tests.helpers import python

PAIRS = """
import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding

import jitcount
from jitcount._observe.values import describe_leaf

devices = np.array(jax.devices())
line, other, lone = Mesh(devices, ("x",)), Mesh(devices, ("y",)), Mesh(devices[:1], ("x",))
grid, idle = Mesh(devices.reshape(2, 4), ("a", "b")), Mesh(devices.reshape(8, 1), ("x", "one"))
back = Mesh(devices[::-1], ("x",))
explicit = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Explicit,))
shardings = [
    *(NamedSharding(line, spec) for spec in (P("x"), P("x", None), P(("x",)), P(), P(None))),
    *(NamedSharding(idle, spec) for spec in (P("x"), P("x", "one"), P("one"), P())),
    *(NamedSharding(grid, spec) for spec in (P(("a", "b")), P(("b", "a")), P("a", "b"), P())),
    *(NamedSharding(explicit, spec) for spec in (P("x"), P("x", None), P())),
    NamedSharding(other, P("y")),
    *(NamedSharding(back, spec) for spec in (P("x"), P())),
    *(NamedSharding(lone, spec) for spec in (P(), P("x"))),
    SingleDeviceSharding(devices[0]),
]
arrays = [jax.device_put(np.ones((8, 4), np.float32), sharding) for sharding in shardings]
jitted, seen = jax.jit(lambda x: 2 * x), []
for array in arrays:
    with jitcount.record() as log:
        jitted(array)
    is_known_to_jax, leaf = not log.compiles, describe_leaf(array)
    if is_known_to_jax != (leaf in seen):
        print(array.sharding, "is new to", "us" if is_known_to_jax else "JAX")
    seen.append(leaf)
print(len(arrays), "shardings,", len(set(seen)), "of them different")
"""

SHORTER = """
import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

import jitcount

mesh = Mesh(np.array(jax.devices()), ("model",))
step = jax.jit(lambda w, x: w + x.sum())
with jitcount.record() as log:
    for length, *spec in ((8, "model", None), (8, "model"), (4, "model")):
        w = jax.device_put(np.ones((8, 4), np.float32), NamedSharding(mesh, P(*spec)))
        step(w, np.ones(length, np.float32))
for compiled in log.compiles:
    print(*map(str, compiled.causes), sep="; ")
"""


def test_two_shardings_are_one_where_they_are_one_to_jax() -> None:
    done = python("-c", PAIRS, env={"JAX_NUM_CPU_DEVICES": "8", "JAX_PLATFORMS": "cpu"})
    assert done.stdout == "22 shardings, 15 of them different\n", done.stdout + done.stderr


def test_a_sharding_that_is_the_same_is_no_cause() -> None:
    done = python("-c", SHORTER, env={"JAX_NUM_CPU_DEVICES": "8", "JAX_PLATFORMS": "cpu"})
    assert done.stdout.splitlines() == [
        "first call of <lambda>",
        "axis 0 of x went from 8 to 4: float32[8] became float32[4]",
    ], done.stderr
