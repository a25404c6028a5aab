"""`jitcount.as_if` with the real compilers of TPUs and GPUs, on a machine that has neither."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jitcount
from jitcount._emulate.arithmetic import EXACT
from jitcount._emulate.as_if import emulated_here
from jitcount._emulate.emulator import Emulator
from jitcount._observe.call_site import shown_path
from jitcount._suite import transformer
from jitcount._targets.names import parse
from tests.helpers import jitcount as command
from tests.helpers import python

BOTH = [
    pytest.param(target, marks=pytest.mark.aot(target), id=target)
    for target in ("tpu:v5e", "cuda:h100")
]
R = np.random.default_rng(0)

# In JAX 0.7 the compiler's program says from which line an operation is, and not of which function.
NAMES_FUNCTIONS = jax.__version_info__ >= (0, 8)


def normal(*shape: int) -> np.ndarray:
    return R.normal(size=shape).astype(np.float32)


def rounded(values: np.ndarray, target: str) -> np.ndarray:
    """As a TPU rounds to bfloat16, ties to even; as a GPU rounds to TF32, ties away from zero."""
    drop = 23 - (7 if target.startswith("tpu") else 10)
    raw = values.view(np.uint32).astype(np.uint64)
    odd = (raw >> drop) & 1 if target.startswith("tpu") else 1
    raw = raw + (1 << (drop - 1)) - 1 + odd
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
    inputs = [rounded(value, target).astype(np.float64) for value in (x, y)]
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
    assert rounding.place.function.endswith("<lambda>" if NAMES_FUNCTIONS else "")
    assert rounding.place.file == __file__


def _cell(w: dict[str, jax.Array], h: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    h = jnp.tanh(x @ w["i"] + h @ w["h"])
    return h, jnp.einsum("bh,ho->bo", h, w["o"])


def _recurrent_loss(w: dict[str, jax.Array], batch: dict[str, jax.Array]) -> jax.Array:
    xs = jnp.swapaxes(batch["query"], 0, 1)
    _, ys = jax.lax.scan(lambda h, x: _cell(w, h, x), jnp.zeros((8, 32)), xs)
    return jnp.mean((ys - xs) ** 2)


@pytest.mark.parametrize("target", BOTH)
def test_each_rounding_of_a_recurrent_network_is_at_the_line_of_its_product(target: str) -> None:
    w = {"i": normal(15, 32), "h": normal(32, 32), "o": normal(32, 15)}
    with jitcount.as_if(target) as emulation:
        jax.jit(jax.value_and_grad(_recurrent_loss))(w, {"query": normal(8, 6, 15)})
    first = _cell.__code__.co_firstlineno
    (program,) = emulation.programs
    found = [(each.place.line - first, each.what) for each in program.roundings]
    assert found == [(1, "@"), (2, "einsum")]
    assert {each.place.file for each in program.roundings} == {__file__}


@pytest.mark.parametrize("target", BOTH)
def test_a_product_that_jax_has_traced_for_another_line_has_its_own(target: str) -> None:
    x = normal(16, 16)

    def one(x: jax.Array) -> jax.Array:
        return jnp.einsum("ij,jk->ik", x, x)

    def other(x: jax.Array) -> jax.Array:
        y = jnp.einsum("ij,jk->ik", x, x)
        return jnp.einsum("ij,jk->ik", jnp.sin(y), x)

    with jitcount.as_if(target) as emulation:
        jax.jit(one)(x)
        jax.jit(other)(x)
    first = [each.__code__.co_firstlineno for each in (one, other)]
    found = [[each.place.line for each in program.roundings] for program in emulation.programs]
    assert found == [[first[0] + 1], [first[1] + 1, first[1] + 2]]


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


@pytest.mark.parametrize("target", BOTH)
def test_a_mean_of_float16_keeps_its_denormals(target: str) -> None:
    small = np.full(100_000, 1e-5, np.float16)
    with jitcount.as_if(target) as emulation:
        mean = jnp.mean(small)
    assert float(mean) == float(small[0]) > 0
    assert all(program.faithful for program in emulation.programs)


@pytest.mark.parametrize("target", BOTH)
def test_a_scatter_of_complex_numbers_adds_both_parts(target: str) -> None:
    x = (normal(4, 4) + 1j * normal(4, 4)).astype(np.complex64)
    places = np.array([2, 0, 3, 1])
    with jitcount.as_if(target) as emulation:
        made = jax.jit(lambda x: jnp.zeros_like(x).at[places].add(x))(x)
    np.testing.assert_array_equal(np.asarray(made)[places], x)
    assert all(program.faithful for program in emulation.programs)


MODEL = """
import jax, jax.numpy as jnp

def layer(x, y):
    coarse = x @ y
    return coarse + jnp.dot(x, x, precision="highest")

@jax.jit
def loss(x, y):
    return jnp.tanh(layer(x, y)).sum()
"""


@pytest.mark.parametrize("target", BOTH)
def test_each_line_has_its_share_of_a_change_with_advice_and_its_cost(
    target: str, tmp_path: Path
) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    space: dict[str, Any] = {}
    exec(compile(MODEL, str(tmp_path / "model.py"), "exec"), space)  # noqa: S102
    x, y = normal(1024, 1024), normal(1024, 1024)
    with jitcount.as_if(target) as emulation:
        pass
    for _ in range(2):  # what is compiled already is looked at again
        found = emulation.error_by_line(space["loss"], x, y)
        first = found.lines[0]
        to = "bfloat16" if target.startswith("tpu") else "TF32"
        assert str(first) == (
            f"model.py:5{' in layer' * NAMES_FUNCTIONS}: x @ y in {to}: 100 % of the change of loss"
        )
        assert found.change > 0
        assert first.remedy is not None
        assert first.remedy.left < 0.1
    assert str(found).startswith(f"As if on {target}: loss is ")
    assert first.remedy is not None
    if target.startswith("tpu"):  # six passes in place of one, beside another that is of six
        assert 1.1 < (first.remedy.cost or 0) < 6
        assert "times the cycles" in str(found)
    else:
        assert str(found).endswith(f"{target} gives no estimate of what that costs")


@pytest.mark.parametrize("target", BOTH)
def test_how_far_a_chip_may_be_off_is_bounded(target: str) -> None:
    x, y = normal(256, 256), normal(256, 256)
    with jitcount.as_if(target) as emulation:
        pass
    found = emulation.error_bound(jax.jit(lambda x, y: jnp.tanh(x @ y)), x, y)
    (off,) = found.off
    assert off.shape == (256, 256)
    assert 1e-8 < found.relative < 1e-3
    assert str(found).startswith(f"As if on {target}: <lambda> may be ")
    whole = emulation.error_bound(jax.jit(lambda x: x[::-1]), x)
    assert whole.relative == 0.0


@pytest.mark.aot("tpu:v5e")
def test_attention_that_a_tpus_compiler_writes_itself_is_carried_over() -> None:
    def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        return jax.nn.softmax(q @ k.T / 8.0) @ v

    q, k, v = normal(2048, 64), normal(2048, 64), normal(2048, 64)
    here = np.asarray(jax.jit(attention)(q, k, v))
    with jitcount.as_if("tpu:v5e") as emulation:
        there = np.asarray(jax.jit(attention)(q, k, v))
    assert [program.reason for program in emulation.programs] == [""]
    (rounding,) = emulation.programs[0].roundings
    line = attention.__code__.co_firstlineno + 1
    assert (rounding.place.line, rounding.what, rounding.count) == (line, "@", 2)
    assert 1e-5 < np.abs(there - here).max() < 1e-2


@pytest.mark.aot("tpu:v5e")
def test_constants_that_the_compiler_rounds_are_exact_where_products_are() -> None:
    x, constant = normal(8, 256), normal(256, 128)

    def product(x: jax.Array) -> jax.Array:
        return x @ jnp.asarray(constant)

    here = np.asarray(jax.jit(product)(x))
    emulator = Emulator.for_target(parse("tpu:v5e"), 600.0)
    off = []
    for each in (emulator, replace(emulator, arithmetic=EXACT)):
        with emulated_here(each) as emulation:
            off.append(np.abs(np.asarray(jax.jit(product)(x)) - here).max())
        assert emulation.faithful
    assert off[0] > 1e-3
    assert off[1] < 1e-4


@pytest.mark.thorough
@pytest.mark.aot("tpu:v5e")
@pytest.mark.usefixtures("x64")
def test_divisions_of_64_bits_which_are_thousands_of_operations_take_no_minutes() -> None:
    key = jax.random.key(0)
    here = jax.random.randint(key, (), 0, 1000)
    with jitcount.as_if("tpu:v5e", timeout=90) as emulation:
        there = jax.random.randint(key, (), 0, 1000)
    assert int(there) == int(here)
    assert {program.reason for program in emulation.programs} == {""}


PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
x = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)
print(float(jax.jit(lambda x: jnp.abs(x @ x.T).sum())(x)))
"""


@pytest.mark.aot("tpu:v5e")
def test_a_program_as_if_on_a_tpu(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    here, there = python(str(script)), command("run", "--as-if", "tpu:v5e", str(script))
    assert (here.returncode, there.returncode) == (0, 0)
    assert float(here.stdout) != float(there.stdout)
    assert abs(float(here.stdout) / float(there.stdout) - 1) < 1e-3
    assert "As if on tpu:v5e: 1 of 1 programs computed as there" in there.stderr


# Whole numbers, whose products every CPU adds up exactly; bfloat16 does not hold all of them.
ROUNDED = r"test_it.py:6( in <lambda>)? +@ +bfloat16"
TESTS = """
import unittest
import jax, numpy as np

x = (np.arange(4096) * 7 % 1021 - 510).astype(np.float32).reshape(64, 64)
f = jax.jit(lambda x: x @ x)

def test_that_compiles():
    assert np.isfinite(f(x)).all()

def test_near():
    np.testing.assert_allclose(f(x), x @ x, rtol=1e-5)

def test_wrong():
    assert float(f(x)[0, 0]) == 17

def test_not_by_rounding():
    assert jax.config.values["jax_xla_profile_version"] < 1_000_000, "as if"

class TestCase(unittest.TestCase):
    def test_near(self):
        np.testing.assert_allclose(f(x), x @ x, rtol=1e-5)
"""


@pytest.mark.aot("tpu:v5e")
def test_a_test_that_fails_only_as_if_says_so_with_the_lines(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    arguments = ("-m", "pytest", "-p", "no:cacheprovider", "-q", str(tmp_path))
    assert "1 failed, 4 passed" in python(*arguments).stdout
    failed = python(*arguments, "--as-if=tpu:v5e").stdout
    assert "4 failed, 1 passed" in failed
    only = "It fails only as if on tpu:v5e: called again as on the CPU it passes."
    assert failed.count(only) == 3
    assert failed.count("There it fails with exact products, too: AssertionError: as if") == 1
    assert failed.count("There it passes with exact products, too: it is their rounding.") == 2
    assert failed.count("Called again as on the CPU it fails, too: AssertionError: ") == 1
    # In each of the two, though an earlier test has compiled it, and in the summary.
    assert len(re.findall(ROUNDED, failed)) == 3
    assert re.search(
        r"3 of 4 failed tests fail only so:\n  \S+::test_near\n  \S+::test_not_by_rounding\n"
        r"  \S+::TestCase::test_near",
        failed,
    )


@pytest.mark.aot("tpu:v5e")
def test_with_exact_products_only_what_has_another_reason_fails(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    arguments = ("-m", "pytest", "-p", "no:cacheprovider", "-q", str(tmp_path))
    failed = python(*arguments, "--as-if=tpu:v5e", "--as-if-exact-products").stdout
    assert "2 failed, 3 passed" in failed
    assert failed.count("Its products are exact: it is something else than their rounding.") == 1
    assert not re.search(ROUNDED, failed)


@pytest.mark.parametrize("target", BOTH)
def test_a_block_with_exact_products_does_not_round_them(target: str) -> None:
    x = (np.arange(4096) * 7 % 1021 - 510).astype(np.float32).reshape(64, 64)
    with jitcount.as_if(target, exact_products=True) as emulation:
        there = np.asarray(jax.jit(lambda x: x @ x)(x))
    np.testing.assert_array_equal(there, x @ x)
    (program,) = emulation.programs
    assert program.faithful
    assert not program.roundings


@pytest.mark.aot("tpu:v5e")
def test_a_test_that_exits_fails_as_it_does_without(tmp_path: Path) -> None:
    lines = [
        "import jax",
        "def test_exit():",
        "    jax.numpy.ones(3)",
        "    raise SystemExit(3)",
        "def test_next():",
        "    pass",
    ]
    (tmp_path / "test_it.py").write_text("\n".join(lines))
    arguments = ("-m", "pytest", "-p", "no:cacheprovider", "-q", str(tmp_path), "--as-if=tpu:v5e")
    failed = python(*arguments)
    assert failed.returncode == 1
    assert "1 failed, 1 passed" in failed.stdout
    assert "Called again as on the CPU it fails, too: SystemExit: 3" in failed.stdout


FAILED_OTHERWISE = """
import jax, numpy as np, pytest

f = jax.jit(lambda x: x @ x)

@pytest.mark.max_compiles(0)
def test_count():
    f(np.ones((3, 3), np.float32))

@pytest.mark.xfail(strict=True)
def test_that_should_fail():
    pass
"""


@pytest.mark.aot("tpu:v5e")
def test_a_test_that_raised_nothing_is_not_said_to_fail_only_there(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FAILED_OTHERWISE)
    arguments = ("-m", "pytest", "-p", "no:cacheprovider", "-q", str(tmp_path), "--as-if=tpu:v5e")
    failed = python(*arguments).stdout
    assert "2 failed" in failed
    assert "alled again" not in failed
    assert "fail only so" not in failed


NOT_READY = """\
from jitcount._after_jax import after_import_of_jax

def patch():
    from jitcount._emulate.emulator import Emulator

    def get_ready(self):
        raise RuntimeError("its compiler does not start\\nat all")
    Emulator.get_ready = get_ready

after_import_of_jax(patch)
"""


@pytest.mark.aot("tpu:v5e")
def test_no_test_passes_where_it_could_not_begin(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(NOT_READY)
    (tmp_path / "test_it.py").write_text("import jax\ndef test_it():\n    pass")
    arguments = ("-m", "pytest", "-p", "no:cacheprovider", "-q", str(tmp_path), "--as-if=tpu:v5e")
    failed = python(*arguments)
    assert failed.returncode == 1
    assert "not as if on tpu:v5e: RuntimeError: its compiler does not start\n" in failed.stdout


@pytest.mark.aot("tpu:v5e")
def test_workers_send_what_they_computed(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    arguments = ("-m", "pytest", "-p", "no:cacheprovider", "-q", str(tmp_path), "--as-if=tpu:v5e")
    closing = python(*arguments, "-n2").stdout.rpartition("as if on tpu:v5e ===")[2]
    found = re.search(r"As if on tpu:v5e: (\d+) of (\d+) programs computed as there", closing)
    assert found is not None, closing
    assert int(found[1]) == int(found[2]) >= 2
    assert len(re.findall(ROUNDED, closing)) == 1


@pytest.mark.parametrize("target", BOTH)
def test_a_ledger_of_an_emulation_says_so(target: str, tmp_path: Path) -> None:
    ledger = tmp_path / "there.json"
    done = command("suite", "--as-if", target, "--ledger", str(ledger), "matmul*", "sum-bfloat16")
    assert done.returncode == 0, done.stdout
    assert json.loads(ledger.read_text())["environment"]["as_if"] == target
    assert f"As if on {target}: " in done.stdout


def _block(w: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    q, k, v = (jnp.einsum("btd,dhk->bthk", x, w[each]) for each in "qkv")
    weights = jax.nn.softmax(jnp.einsum("bqhk,bshk->bhqs", q, k))
    made = jnp.einsum("bhqs,bshk->bqhk", weights, v)
    return x + jnp.einsum("bqhk,hkd->bqd", made, w["o"])


@pytest.mark.aot("cuda:h100")
def test_what_fails_only_without_a_device_is_compiled_without_triton() -> None:
    w = {each: normal(64, 4, 16) / 8 for each in "qkv"} | {"o": normal(4, 16, 64) / 8}

    def step(w: dict[str, jax.Array], x: jax.Array) -> Any:
        return jax.grad(lambda w: jnp.mean(_block(w, x) ** 2))(w)

    with jitcount.record(["cuda:h100"]) as log, jitcount.as_if("cuda:h100") as emulation:
        jax.block_until_ready(jax.jit(step)(w, normal(16, 28, 64)))
    (on,) = (compiled.on["cuda:h100"] for compiled in log.compiles)
    assert on.error is None
    assert on.memory_bytes is not None
    line = _block.__code__.co_firstlineno + 4
    where = f"{Path(__file__).name}:{line} in _block"
    (program,) = emulation.programs
    assert program.faithful
    for said in (on.fallback, program.fallback):
        begin, end = said.split(shown_path(__file__).removesuffix(Path(__file__).name) + where)
        assert begin == "compiled without Triton kernels: the one picked for the product at "
        assert end == " fails, and a device would try others"
