"""Products and convolutions of whole numbers: equal to the bit, also at the default precision.

Factors are numbers that bfloat16 can hold, and partial sums stay below 2**24. One exception asks
for float32, with factors that no narrower type holds.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jitcount._suite.data import weights, whole
from jitcount._suite.jitted import jitted, same_bits

_HIGHEST = lax.Precision.HIGHEST
_PAIRS = [
    whole(*shape, most=16, seed=seed)
    for seed, shape in enumerate(
        [
            *((7, 127), (127, 9), (8, 128), (128, 128), (129, 257), (257, 3)),
            *((1, 1025), (1025, 1), (5, 33), (33, 300)),
        ]
    )
]
_BATCH = whole(5, 9, 33, seed=20), whole(5, 33, 7, seed=21)
_MANY = whole(65, 3, 9, seed=35), whole(65, 9, 2, seed=36)
_VECTORS = (whole(129, most=16, seed=22), whole(129, most=16, seed=23), whole(9, 129, seed=24))

# Thirteen bits: bfloat16 and TF32 would round them; float32 holds them, and so do two bfloat16.
_WIDE = 2 * whole(9, 129, most=2047, seed=25) + 4097
_NARROW = whole(129, 5, most=3, seed=26)

# Twenty bits take three bfloat16. Of each column eight are picked, with a sign.
_WIDEST = 2 * whole(9, 130, most=2**19, seed=33) - 1
_PICKED = np.where(
    (np.arange(130)[:, None] * 7 + np.arange(5) * 3) % 17 == 0, np.sign(whole(130, 5, seed=34)), 0
).astype(np.float32)


def _products(*factors: Any) -> list[Any]:
    return [a @ b for a, b in zip(factors[::2], factors[1::2], strict=True)]


PRODUCT_CASES = (
    jitted(
        "matmul-shapes-whole",
        "products of shapes that fill no tile, at the default precision",
        _products,
        _PAIRS,
        same_bits(_products),
    ),
    jitted(
        "matmul-long-whole",
        "a product of 65,537 terms",
        jnp.matmul,
        (whole(3, 65_537, seed=27), whole(65_537, 2, seed=28)),
        same_bits(lambda a, b: [a @ b]),
    ),
    jitted(
        "matmul-batched-whole",
        "a product for each of a batch",
        lambda a, b, c, d: [a @ b, c @ d],
        (*_BATCH, *_MANY),
        same_bits(lambda a, b, c, d: [a @ b, c @ d]),
    ),
    jitted(
        "einsum-transposed-whole",
        "products with operands that lie the other way round",
        lambda a, b: [
            jnp.einsum("bij,bjk->bki", a, b),
            jnp.einsum("bij,bik->bjk", a, a),
            jnp.einsum("bij,cij->bc", a, a),
            jnp.einsum("bij,bjk->ik", a, b),
        ],
        _BATCH,
        same_bits(lambda a, b: [
            (a @ b).swapaxes(1, 2),
            a.swapaxes(1, 2) @ a,
            a.reshape(5, -1) @ a.reshape(5, -1).T,
            (a @ b).sum(0),
        ]),
    ),
    jitted(
        "dot-matvec-whole",
        "a product of vectors, of a matrix and a vector, and of each with each",
        lambda a, b, m: [jnp.dot(a, b), m @ a, jnp.outer(a[:33], b[:9]), jnp.vdot(m[0], m[1])],
        _VECTORS,
        same_bits(lambda a, b, m: [a @ b, m @ a, np.outer(a[:33], b[:9]), m[0] @ m[1]]),
    ),
    jitted(
        "dot-1000000-whole",
        "a long product of vectors",
        jnp.dot,
        (weights(1_000_000) % 3 + 1, weights(1_000_000, seed=2) % 4 + 1),
        same_bits(lambda a, b: [np.dot(a, b)]),
    ),
    jitted(
        "matmul-wide-whole",
        "numbers of 13 bits, multiplied in float32: no narrower type holds them",
        lambda a, b: [
            jnp.matmul(a, b, precision=_HIGHEST),
            jnp.matmul(b.T, a.T, precision=_HIGHEST),
            jnp.einsum("ij,jk->ik", a[:1], b, precision=_HIGHEST),
        ],
        (_WIDE, _NARROW),
        same_bits(lambda a, b: [a @ b, b.T @ a.T, a[:1] @ b]),
    ),
    jitted(
        "matmul-widest-whole",
        "numbers of 20 bits, multiplied in float32 by 1, -1 and 0: no bit is lost",
        lambda a, b: [
            jnp.matmul(a, b, precision=_HIGHEST),
            jnp.matmul(b.T, a.T, precision=_HIGHEST),
        ],
        (_WIDEST, _PICKED),
        same_bits(lambda a, b: [a @ b, b.T @ a.T]),
    ),
    jitted(
        "matmul-int8",
        "a product of int8, added up in int32",
        lambda a, b: jnp.matmul(a, b, preferred_element_type=jnp.int32),
        (whole(9, 130, most=120, dtype="int8", seed=29), whole(130, 5, most=120, dtype="int8")),
        same_bits(lambda a, b: [a.astype(np.int64) @ b.astype(np.int64)]),
    ),
    jitted(
        "convolution-whole",
        "with strides, holes, padding and groups",
        lambda x, w, grouped: [
            _convolved(x, w, window_strides=(2, 3), padding=((1, 2), (0, 3))),
            _convolved(x, w, window_strides=(2, 2), padding="VALID", rhs_dilation=(2, 2)),
            _convolved(x, w, window_strides=(2, 3), padding=((0, 0),) * 2, lhs_dilation=(2, 2)),
            _convolved(x, grouped, window_strides=(2, 2), padding="SAME", feature_group_count=2),
        ],
        (whole(2, 4, 11, 13, seed=30), whole(6, 4, 3, 3, seed=31), whole(6, 2, 3, 3, seed=32)),
        same_bits(lambda x, w, grouped: [
            _slowly(np.pad(x, ((0, 0), (0, 0), (1, 2), (0, 3))), w, (2, 3)),
            _slowly(x, _with_holes(w), (2, 2)),
            _slowly(_with_holes(x), w, (2, 3)),
            np.concatenate([
                _slowly(np.pad(half, ((0, 0), (0, 0), (1, 1), (1, 1))), part, (2, 2))
                for half, part in zip(np.split(x, 2, 1), np.split(grouped, 2), strict=True)
            ], 1),
        ]),
    ),
    jitted(
        "convolution-tiles-whole",
        "130 channels into 129, and 261 places: no tile is full",
        lambda x, w: [
            _convolved(x, w, window_strides=(1, 2), padding="VALID")[..., ::3],
            _convolved(x[:, :1], w[:3, :1], window_strides=(1, 1), padding="SAME"),
        ],
        (whole(1, 130, 1, 261, seed=37), whole(129, 130, 1, 3, seed=38)),
        same_bits(lambda x, w: [
            _slowly(x, w, (1, 2))[..., ::3],
            _slowly(np.pad(x[:, :1], ((0, 0),) * 3 + ((1, 1),)), w[:3, :1], (1, 1)),
        ]),
    ),
)  # fmt: skip


def _convolved(x: jax.Array, w: jax.Array, **options: object) -> jax.Array:
    return lax.conv_general_dilated(x, w, **options)  # type: ignore[arg-type]


def _with_holes(x: np.ndarray) -> np.ndarray:
    wide = np.zeros((*x.shape[:2], 2 * x.shape[2] - 1, 2 * x.shape[3] - 1))
    wide[:, :, ::2, ::2] = x
    return wide


def _slowly(x: np.ndarray, w: np.ndarray, strides: tuple[int, int]) -> np.ndarray:
    """Compute a convolution window by window."""
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows[:, :, :: strides[0], :: strides[1]], w)
