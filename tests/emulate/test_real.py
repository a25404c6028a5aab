"""`jitcount.as_if` with the real compilers of TPUs and GPUs, on a machine that has neither."""

import json
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jitcount
from jitcount.suite import transformer
from tests.helpers import jitcount as command
from tests.helpers import python

BOTH = [
    pytest.param(target, marks=pytest.mark.aot(target), id=target)
    for target in ("tpu:v5e", "cuda:h100")
]
R = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return R.normal(size=shape).astype(np.float32)


def rounded(values: np.ndarray, bits: int) -> np.ndarray:
    """Rounded to so many bits of mantissa, ties to even."""
    drop = 23 - bits
    raw = values.view(np.uint32).astype(np.uint64)
    raw = raw + (1 << (drop - 1)) - 1 + ((raw >> drop) & 1)
    return ((raw >> drop) << drop).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("target", BOTH)
def test_a_product_is_that_of_rounded_inputs_and_outside_nothing_changes(target: str) -> None:
    x, y = normal(128, 256), normal(256, 64)
    product = jax.jit(lambda x, y: x @ y)
    before = np.asarray(product(x, y))
    with jitcount.as_if(target) as emulation:
        there = np.asarray(product(x, y))
        again = np.asarray(product(x, y))
    assert np.array_equal(there, again)
    bits = 7 if target.startswith("tpu") else 10
    inputs = [rounded(value, bits).astype(np.float64) for value in (x, y)]
    scale = np.abs(inputs[0]) @ np.abs(inputs[1])
    assert (np.abs(there - inputs[0] @ inputs[1]) / scale).max() < 1e-6
    assert np.abs(there - before).max() > 1e-4
    with jitcount.record() as log:
        after = np.asarray(product(x, y))
    assert np.array_equal(after, before)
    assert log.count() == 0  # what was compiled before the block is there as before
    (program,) = emulation.programs
    assert (program.function, program.faithful) == ("<lambda>", True)
    (rounding,) = program.roundings
    assert rounding.place.function.endswith("<lambda>")
    assert rounding.place.file == __file__


@pytest.mark.parametrize("target", BOTH)
def test_ten_training_steps_of_a_transformer_are_faithful(target: str) -> None:
    def losses() -> list[float]:
        state, found = transformer.init(), []
        for batch in range(10):
            state, loss = transformer.step(state, transformer.tokens(seed=batch))
            found.append(float(loss))
        return found

    here = losses()
    with jitcount.as_if(target) as emulation:
        there = losses()
    assert [program.reason for program in emulation.programs if not program.faithful] == []
    np.testing.assert_allclose(there, here, rtol=1e-3)


@pytest.mark.aot("tpu:v5e")
def test_each_line_has_its_share_of_a_change() -> None:
    def loss(x: jax.Array, y: jax.Array) -> jax.Array:
        coarse = x @ y
        fine = jnp.dot(x, y, precision="highest")
        return (coarse + fine).sum()

    with jitcount.as_if("tpu:v5e") as emulation:
        pass
    found = emulation.shares(jax.jit(loss), normal(64, 64), normal(64, 64))
    first, second = found.lines
    assert "bfloat16" in first.what
    assert first.share > 0.99
    assert abs(second.share) < 0.01
    assert "bfloat16, six passes" in second.what


PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
x = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)
print(float(jax.jit(lambda x: jnp.abs(x @ x.T).sum())(x)))
"""


@pytest.mark.aot("tpu:v5e")
def test_a_program_and_a_suite_of_tests_as_if_on_a_tpu(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    here, there = python(str(script)), command("run", "--as-if", "tpu:v5e", str(script))
    assert (here.returncode, there.returncode) == (0, 0)
    assert float(here.stdout) != float(there.stdout)
    assert abs(float(here.stdout) / float(there.stdout) - 1) < 1e-3
    assert "As if on tpu:v5e: 1 of 1 programs faithful" in there.stderr

    test = "import jax, numpy as np\ndef test_product():\n"
    test += "    x = np.linspace(-1, 1, 4096, dtype=np.float32).reshape(64, 64)\n"
    test += "    np.testing.assert_allclose(jax.jit(lambda x: x @ x)(x), x @ x, rtol=1e-5)\n"
    (tmp_path / "test_it.py").write_text(test)
    arguments = ("-m", "pytest", "-p", "no:cacheprovider", "-q", str(tmp_path))
    assert python(*arguments).returncode == 0
    failed = python(*arguments, "--as-if=tpu:v5e")
    assert failed.returncode == 1
    assert "as if on tpu:v5e" in failed.stdout
    assert re.search(
        r"test_it.py:4 in test_product\S*<lambda> +dot_general +bfloat16", failed.stdout
    )


@pytest.mark.parametrize("target", BOTH)
def test_a_ledger_of_an_emulation_says_so(target: str, tmp_path: Path) -> None:
    ledger = tmp_path / "there.json"
    done = command("suite", "--as-if", target, "--ledger", str(ledger), "matmul*", "sum-bfloat16")
    assert done.returncode == 0, done.stdout
    assert json.loads(ledger.read_text())["environment"]["as_if"] == target
    assert f"As if on {target}: " in done.stdout
