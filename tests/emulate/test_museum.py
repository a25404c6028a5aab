"""What users have reported from real devices, computed here by the device's own compiler's program.

Each has its source. Digits that are given must come out; where they do not, the test says how near
and why.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax, random

import jitcount


def printed(values: jax.Array) -> str:
    return " ".join(np.array2string(np.asarray(values), separator=" ").split())


@pytest.mark.aot("tpu:v5e")
def test_a_2_by_2_product_on_a_tpu_has_the_digits_of_jax_issue_9973() -> None:
    x = np.array([[0.3744, 0.1656], [0.4707, 0.1663]])
    y = np.array([[0.3946, 0.1186], [0.1569, 0.3145]])
    with jitcount.as_if("tpu:v5e") as emulation:
        product = jnp.dot(jnp.asarray(x), jnp.asarray(y))
    assert emulation.faithful
    assert printed(product) == "[[0.17405128 0.09669876] [0.21180916 0.10805416]]"


@pytest.mark.aot("tpu:v5e")
def test_products_on_a_tpu_have_the_digits_of_jax_issue_16349() -> None:
    axes = (((2,), (0,)), ((), ()))
    with jax.threefry_partitionable(False), jitcount.as_if("tpu:v5e") as emulation:  # noqa: FBT003
        _, one, other = random.split(random.PRNGKey(0), 3)
        x, k = random.normal(one, shape=(1, 2, 4)), random.normal(other, shape=(4, 2))
        whole = lax.dot_general(x, k, axes)
        rows = [lax.dot_general(x[:, i : i + 1], k, axes) for i in range(2)]
    assert emulation.faithful
    assert printed(whole) == "[[[0.31184387 5.3089447 ] [0.5985794 3.6086464 ]]]"
    # A row times a matrix is multiplied and added in float32 by the compiler of today; that of
    # 2023, for a TPU v3, took another way, and ended up to 4e-5 from there.
    there = np.array([[[0.31908777, 5.3246055], [0.60039854, 3.6162388]]])
    np.testing.assert_allclose(jnp.concatenate(rows, axis=1), there, rtol=4e-5)


@pytest.mark.aot("tpu:v5e")
def test_an_einsum_on_a_tpu_is_off_as_in_jax_issue_23159() -> None:
    b, t, a, r, d = 4, 1, 8, 4, 10
    x = np.arange(b * t * d, dtype=np.float32).reshape(b, t, d)
    y = np.arange(a * d * r, dtype=np.float32).reshape(a, d, r)
    exact = np.einsum("btd,adr->brta", x, y)
    with jitcount.as_if("tpu:v5e") as emulation:
        there = np.asarray(jnp.einsum("btd,adr->brta", x, y))
    assert emulation.faithful
    off = np.abs(there - exact)
    assert (int(np.count_nonzero(off)), off.size, float(off.max())) == (16, 128, 345.0)
    assert f"{(off / exact).max():.8f}" == "0.00333382"


@pytest.mark.aot("cuda:a100")
def test_a_product_on_an_a100_has_the_digits_of_jax_issue_14157() -> None:
    # So small a product the compiler of today leaves in a loop, in float32. Among zeros, that add
    # nothing, it is large enough for the tensor cores, as that of 2023 took it.
    small = np.array([[1.1111111, 2.2222222], [3.3333333, 4.4444444]], np.float32)
    large = np.zeros((64, 64), np.float32)
    large[:2, :2] = small
    with jitcount.as_if("cuda:a100") as emulation:
        product = jax.jit(lambda x: x @ x.T)(large)[:2, :2]
    assert emulation.faithful
    assert [str(rounding.to) for rounding in emulation.programs[0].roundings] == ["TF32"]
    assert printed(product) == "[[ 6.175251 13.585552] [13.585552 30.876255]]"
