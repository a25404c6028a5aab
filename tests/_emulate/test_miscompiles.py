"""What the compilers of TPUs and GPUs compute wrongly, seen without a device.

Each program is right on the CPU. Where a release is known to be wrong, the target's own program is
wrong here; where it is not, or with the flag that cures it, it is right. So a test fails when the
table of known miscompiles is out of date.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jitcount as jc
from jitcount._miscompiles.known import Miscompile, jaxlib_release, known_on, warning
from tests.helpers import ROOT, jitcount, python

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.thorough

TARGETS = [
    pytest.param(target, marks=pytest.mark.aot(target), id=target)
    for target in ("tpu:v4", "cuda:h100")
]
FOUR = {"JAX_NUM_CPU_DEVICES": "4"}
RIGHT = "0 of 768 gradients are wrong, by up to 0"
WRONG = "204 of 768 gradients are wrong, by up to 16"


def known(reference: str, target: str) -> Miscompile | None:
    """A miscompile, if the installed compiler of that target has it."""
    here = known_on(target.partition(":")[0], jaxlib_release())
    return next((each for each in here if each.reference == reference), None)


@pytest.mark.parametrize("target", TARGETS)
def test_gradients_by_scatter_in_a_scan_are_wrong_as_in_openxla_issue_49143(target: str) -> None:
    example = ("run", "--as-if", target, "examples/gradients_by_scatter.py")
    found = jitcount(*example, cwd=ROOT, env=FOUR)
    miscompile = known("openxla #49143", target)
    assert found.stdout.strip() == (WRONG if miscompile else RIGHT), found.stderr
    assert f"As if on {target}: 1 of 1 programs computed as there" in found.stderr
    if miscompile:
        cured = jitcount(*example, cwd=ROOT, env=FOUR | {"XLA_FLAGS": miscompile.cured_by})
        assert cured.stdout.strip() == RIGHT, cured.stderr


def test_on_four_cpu_devices_they_are_right() -> None:
    found = python("examples/gradients_by_scatter.py", cwd=ROOT, env=FOUR)
    assert found.stdout.strip() == RIGHT, found.stderr


LARGEST = """
import json, sys

import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

import jitcount

mesh = Mesh(np.array(jax.devices()), ("x",))
x = np.stack([np.roll(np.arange(1024.0, dtype=np.float32), n) for n in range(8)])
given = jax.device_put(x, NamedSharding(mesh, P(None, "x")))
with jitcount.as_if(sys.argv[1]) as emulation:
    values, places = jax.jit(lambda x: jax.lax.top_k(x, 4))(given)
    others = jax.jit(lambda x: jax.lax.top_k(x, 4)[1] + 1)(given) - 1
order = np.argsort(-x, axis=1)[:, :4]
print(json.dumps({
    "values": bool(np.all(values == np.take_along_axis(x, order, 1))),
    "places": bool(np.all(places == order)),
    "zero": bool(np.all(places == 0)),
    "used": bool(np.all(others == order)),
    "reasons": [each.reason for each in emulation.programs if each.reason],
}))
"""


@pytest.mark.parametrize("target", TARGETS)
def test_the_places_of_the_largest_are_all_0_as_in_openxla_issue_49005(
    target: str, tmp_path: Path
) -> None:
    script = tmp_path / "largest.py"
    script.write_text(LARGEST)
    done = python(str(script), target, env=FOUR)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["values"], found["used"]) == (True, True)
    if known("openxla #49005", target) is None:
        assert (found["places"], found["reasons"]) == (True, [])
    elif found["reasons"]:  # or the compiler ends itself over it: libtpu of 0.11.2
        assert "refuses it: the compiler was ended by SIGABRT" in found["reasons"][0]
    else:
        assert (found["places"], found["zero"]) == (False, True)


SCALED = """
import jax, numpy as np

import jitcount

a, b = np.ones((32, 64), np.float32), np.ones((64, 32), np.float32)
with jitcount.as_if("cuda:a100") as emulation:
    found = jax.jit(lambda a, b, bias: (a @ b + bias) / 64)(a, b, np.full(32, 640, np.float32))
assert emulation.faithful, emulation
print(float(found[0, 0]))
"""


@pytest.mark.aot("cuda:a100")
@pytest.mark.parametrize("flags", ["", "--xla_disable_hlo_passes=cublas-gemm-rewriter"])
def test_a_bias_is_not_scaled_as_in_jax_issue_40362(tmp_path: Path, flags: str) -> None:
    # On a card the fastest kernel is chosen by trying them. Here it must be said that it is cuBLAS.
    script = tmp_path / "scaled.py"
    script.write_text(SCALED)
    of_cublas = f"--xla_gpu_enable_triton_gemm=false {flags}"
    done = python(str(script), env={"XLA_FLAGS": of_cublas})
    assert done.returncode == 0, done.stderr
    is_wrong = known("openxla #46110", "cuda:a100") is not None and not flags
    assert float(done.stdout) == (641.0 if is_wrong else 11.0)


def _end_of_attention(
    weights: jax.Array, values: jax.Array, w: jax.Array, bias: jax.Array
) -> jax.Array:
    made = jnp.einsum("bhqs,bshk->bqhk", weights, values)
    return (made.reshape(24, 16) @ w + bias) / 4


@pytest.mark.aot("cuda:h100")
def test_what_is_compiled_without_triton_for_want_of_a_device_is_right() -> None:
    # XLA's first choice of Triton's tiles does not fit 12; then cuBLAS would not scale the bias.
    r = np.random.default_rng(0)
    shapes = (2, 4, 12, 12), (2, 12, 4, 4), (16, 16), (16,)
    given = [r.normal(size=shape).astype(np.float32) for shape in shapes]
    expected = jax.jit(_end_of_attention)(*given)
    with jc.as_if("cuda:h100", exact_products=True) as emulation:
        found = jax.jit(_end_of_attention)(*given)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    (program,) = emulation.programs
    miscompile = known("openxla #46110", "cuda:h100")
    assert program.faithful is (miscompile is None)
    if miscompile is not None:
        assert program.reason.endswith(f"; without them, {warning(miscompile)}")
