"""A call for each operation that has a rule: what JAX computes must be within the tolerance."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import special

Call = tuple[Callable[..., Any], Sequence[Any]]

_random = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    """Numbers of both signs."""
    return _random.normal(size=shape).astype(np.float32)


def positive(*shape: int) -> np.ndarray:
    """Numbers between 0.5 and 3."""
    return _random.uniform(0.5, 3, size=shape).astype(np.float32)


def whole(*shape: int) -> np.ndarray:
    """Small integers of both signs."""
    return _random.integers(-9, 9, size=shape).astype(np.int32)


def several(*shape: int) -> np.ndarray:
    """Complex numbers."""
    return (normal(*shape) + 1j * normal(*shape)).astype(np.complex64)


def definite(n: int) -> np.ndarray:
    """A symmetric matrix with positive eigenvalues."""
    half = normal(n, n)
    return (half @ half.T / n + np.eye(n)).astype(np.float32)


_X, _Y, _P, _I, _J = normal(6, 5), normal(6, 5), positive(6, 5), whole(6, 5), whole(6, 5)
_C, _D = several(6, 5), several(6, 5)
_U = _I.view(np.uint32)


def _image() -> Sequence[np.ndarray]:
    return normal(2, 9, 8, 3), normal(3, 3, 3, 4)


def _convolution(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(
        x, w, (2, 1), ((1, 2), (0, 1)), lhs_dilation=(1, 2), rhs_dilation=(2, 1),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )  # fmt: skip


def _grouped(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(x, w, (1,), "SAME", feature_group_count=2)


def _batched(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(x, w, (1,), "SAME", batch_group_count=2)


def _pooled(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "SAME")


def _smallest(x: Any) -> Any:
    return lax.reduce_window(x, jnp.inf, lax.min, (2, 2), (1, 2), "VALID")


def _window_sum(x: Any) -> Any:
    return lax.reduce_window(x, 0.0, lax.add, (3, 2), (1, 2), "SAME")


def _walk(x: Any) -> Any:
    return lax.scan(lambda c, row: (jnp.tanh(c + row), c * 2), x[0], x)


def _backwards(x: Any) -> Any:
    return lax.scan(lambda c, row: (c * 0.5 + row, c), x[0], x, reverse=True)


def _halve(x: Any) -> Any:
    return lax.while_loop(lambda c: jnp.max(c) > 1.0, lambda c: c * 0.5, x)


def _either(i: Any, x: Any) -> Any:
    return lax.switch(i, [jnp.sin, jnp.cos, jnp.exp], x)


def _solution(a: Any, b: Any) -> Any:
    return lax.custom_linear_solve(
        lambda v: a @ v, b, lambda _, c: jnp.linalg.solve(a, c), symmetric=True
    )


def _root(a: Any) -> Any:
    values, vectors = jnp.linalg.eigh(a)
    return (vectors * jnp.sqrt(values)) @ vectors.T


def _keyed(key: Any) -> Any:
    one, two = jax.random.split(jax.random.fold_in(key, 3))
    return jax.random.uniform(one, (4,)), jax.random.randint(two, (3,), 0, 9), one


def _unary(f: Callable[..., Any], x: np.ndarray = _X) -> Call:
    return f, (x,)


def _scattered(method: str) -> Call:
    def f(x: Any, values: Any) -> Any:
        return getattr(x.at[jnp.array([1, 4, 1]), :2], method)(values)

    return f, (positive(6, 5), positive(3, 2))


CALLS: dict[str, Call] = {
    # Functions of one argument
    **{
        name: _unary(getattr(lax, name))
        for name in (
            "exp", "exp2", "expm1", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh",
            "logistic", "erf", "erfc", "cbrt", "neg", "abs", "sign", "floor", "ceil", "square",
            "is_finite", "bessel_i0e", "bessel_i1e",
        )
    },
    **{
        name: _unary(getattr(lax, name), _P)
        for name in ("log", "log1p", "sqrt", "rsqrt", "lgamma", "digamma")
    },
    **{
        name: _unary(getattr(lax, name), np.clip(_X / 4, -0.9, 0.9).astype(np.float32))
        for name in ("asin", "acos", "atanh", "erf_inv")
    },
    "acosh": _unary(lax.acosh, 1 + _P),
    "complex functions": (lambda z: (lax.exp(z), lax.log(z), lax.sqrt(z), lax.abs(z)), (_C,)),
    "parts of complex": (lambda z: (lax.real(z), lax.imag(z), lax.conj(z), lax.sign(z)), (_C,)),
    "complex": (lax.complex, (_X, _Y)),
    "round": (lambda x: (lax.round(x * 3), jnp.round(x * 3)), (_X,)),
    "round of ties": (
        lambda x: (lax.round(x), jnp.round(x)), (np.arange(-7, 8, dtype=np.float32) / 2,),
    ),
    "denormals": (lambda x: x * 2, (np.array([1e-40, -3e-39, 0, 1], np.float32),)),
    "integer_pow": (lambda x: (x**3, x**-2), (_P,)),
    "integer_pow of integers": (lambda i: i**3, (_I,)),
    "logsumexp": _unary(jax.nn.logsumexp),
    # Of several
    "add": (lax.add, (_X, _Y)),
    "sub": (lax.sub, (_X, _Y)),
    "mul": (lax.mul, (_X, _Y)),
    "mul of complex": (lax.mul, (_C, _D)),
    "div": (lax.div, (_X, _P)),
    "div of complex": (lax.div, (_C, _D)),
    "div of integers": (lax.div, (_I, np.where(_J == 0, 3, _J))),
    "div by zero": (lax.div, (_I, np.zeros_like(_I))),
    "rem": (lax.rem, (_X, _P)),
    "rem of integers": (lax.rem, (_I, np.where(_J == 2, 0, _J))),
    "scalars": (lambda x, s: (x * 2 + s, x > s), (_X, np.float32(0.3))),
    "pow": (lax.pow, (_P, _Y)),
    "atan2": (lax.atan2, (_X, _Y)),
    "nextafter": (lax.nextafter, (_X, _Y)),
    "max": (lax.max, (_X, _Y)),
    "min": (lax.min, (_X, _Y)),
    "clamp": (lambda x: lax.clamp(-0.5, x, 0.5), (_X,)),
    "igamma": (lax.igamma, (_P, positive(6, 5))),
    "igammac": (lax.igammac, (_P, positive(6, 5))),
    "betainc": (special.betainc, (_P, positive(6, 5), (_P / 4).astype(np.float32))),
    "slope of igamma": (jax.grad(lambda a: lax.igamma(a, 2.0).sum()), (_P,)),
    "slope of random_gamma": (
        jax.grad(lambda a: jax.random.gamma(jax.random.key(0), a).sum()), (positive(3),),
    ),
    "round powers": (lambda x: (lax.exp2(x), x**20), (np.arange(1, 9, dtype=np.float32),)),
    "large powers": (lambda x: (lax.exp2(x), lax.cosh(x), lax.sinh(x)), (30 * _X,)),
    "log of gamma at one": (lax.lgamma, (np.array([1, 2, 3], np.float32),)),
    "zeta": (special.zeta, (1.1 + _P, positive(6, 5))),
    "polygamma": (lambda x: special.polygamma(2, x), (_P,)),
    "comparisons": (lambda i, j: (i == j, i != j, i < j, i <= j, i > j, i >= j), (_I, _J)),
    "logic": (lambda i, j: (i & j, i | j, i ^ j, ~i), (_I, _J)),
    "shifts": (
        lambda u: (u << 3, u << 40, lax.shift_right_logical(u, np.uint32(5))),
        (_U,),
    ),
    "shift_right_arithmetic": (lambda i: lax.shift_right_arithmetic(i, np.int32(2)), (_I,)),
    "bits": (lambda u: (lax.population_count(u), lax.clz(u)), (_U,)),
    "where": (lambda x, y: jnp.where(x > 0, x, y), (_X, _Y)),
    "select_n": (lambda i, x: lax.select_n(i, x, -x, x * 2), (abs(_I) % 3, _X)),
    "stop_gradient": (lambda x: lax.stop_gradient(x) + lax.optimization_barrier(x), (_X,)),
    "literals": (
        lambda x: (jax.jit(lambda x, c: x == c)(x, 0.1), jnp.clip(x, 0.0, 0.1), x % 0.1,
                   jnp.where(x > 0, 0.1, 0.0) - x), (np.array([0.1, 0.3], np.float32),),
    ),
    "complex scalars": (
        lambda z: (z[0] + z[1], z[0] * z[1], z.sum(), jnp.var(z)),
        (np.array([1.1 + 2j, 3 - 1j], np.complex64),),
    ),
    "complex determinant": (jnp.linalg.det, (several(3, 3),)),
    "complex powers": (lambda z: z ** (3 + 1j), (_C,)),
    # Conversions
    "to bfloat16 and back": (lambda x: x.astype(jnp.bfloat16).astype(jnp.float32), (_X,)),
    "to float16": (lambda x: x.astype(jnp.float16), (_X,)),
    "beyond float16": (lambda i: i.astype(jnp.float16), (np.array([7, 70000], np.uint32),)),
    "to integers": (lambda x: (x.astype(jnp.int32), (x * 1e12).astype(jnp.int32)), (_X,)),
    "to booleans": (lambda x: x.astype(bool), (_X,)),
    "to floats": (lambda i: (i.astype(jnp.float32), (i > 0).astype(jnp.float32)), (_I,)),
    "large integers to floats": (lambda i: (i * 12345678).astype(jnp.float32), (_I,)),
    "bitcast": (lambda x: lax.bitcast_convert_type(x, jnp.uint32), (_X,)),
    "bitcast back": (lambda u: lax.bitcast_convert_type(u >> 9 | 0x3F800000, jnp.float32), (_U,)),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 5, 4), (_X,)),
    # Shapes
    "tile": (lambda x: jnp.tile(x, (2, 1, 3)), (_X,)),
    "reshape": (lambda x: (x.reshape(3, 10), x.T, x[None, 2], x[:, ::-2]), (_X,)),
    "broadcast": (lambda x: jnp.broadcast_to(x[:, None, :], (6, 2, 5)), (_X,)),
    "concatenate": (lambda x, y: (jnp.concatenate([x, y]), jnp.stack([x, y], 1)), (_X, _Y)),
    "split": (lambda x: jnp.split(x, [2, 3], 1), (_X,)),
    "iota": (lambda x: x + lax.broadcasted_iota(jnp.float32, (6, 5), 1), (_X,)),
    "pad": (lambda x: lax.pad(x, 7.0, ((1, 2, 1), (-1, 3, 0))), (_X,)),
    "pad less": (lambda x: lax.pad(x, 7.0, ((-1, -2, 2), (0, -1, 1))), (_X,)),
    "slices": (
        lambda x, i: (lax.dynamic_slice(x, (i, 9), (2, 3)), lax.dynamic_index_in_dim(x, i)),
        (_X, np.int32(3)),
    ),
    "update slice": (
        lambda x, y, i: lax.dynamic_update_slice(x, y, (i, i)),
        (_X, normal(2, 2), np.int32(2)),
    ),
    # Places
    "gather": (lambda x, i: (x[i], x[:, i % 5], x[i, i % 5]), (_X, np.array([1, -2, 5, 0]))),
    "gather beyond": (lambda x, i: x.at[i].get(mode="fill"), (_X, np.array([1, 9]))),
    "gather clipped": (lambda x, i: x.at[i].get(mode="clip"), (_X, np.array([1, 9]))),
    "take along": (lambda x, i: jnp.take_along_axis(x, i, 1), (_X, abs(_I) % 5)),
    "gather of windows": (
        jax.vmap(lambda x, i: lax.dynamic_slice(x, (i,), (2,))),
        (_X, np.array([0, 1, 9, 3, 2, 2])),
    ),
    **{f"scatter {name}": _scattered(name) for name in ("set", "add", "multiply", "min", "max")},
    "scatter beyond": (lambda x, i: x.at[i].add(2.0), (_X, np.array([1, 9, 1]))),
    "scatter of windows": (
        jax.vmap(lambda x, y, i: lax.dynamic_update_slice(x, y, (i,))),
        (_X, normal(6, 2), np.array([0, 1, 9, 3, 2, 2])),
    ),
    "segment_sum": (lambda x, i: jax.ops.segment_sum(x, i, 4), (normal(60), abs(whole(60)) % 4)),
    # Order
    "sort": (lambda x: (jnp.sort(x), jnp.argsort(x, 0)), (_X,)),
    "sort by keys": (lambda i, x: lax.sort((i, x), num_keys=1), (_I, _X)),
    "sort pairs": (lambda i, x: lax.sort((i, x), num_keys=2, dimension=0), (_I, _X)),
    "top_k": (lambda x: lax.top_k(x, 3), (_X,)),
    "argmax": (lambda x: (jnp.argmax(x, 0), jnp.argmin(x, 1)), (_X,)),
    "approx_max_k": (lambda x: lax.approx_max_k(x, 3), (_X,)),
    # Reductions
    "reductions": (lambda x: (x.sum(), x.sum(0), x.prod(1), x.max(1), x.min()), (_X,)),
    "reductions of integers": (lambda i: (i.sum(1), i.prod(0), i.max(0), i.min(1)), (_I,)),
    "logical reductions": (lambda x: ((x > 0).any(0), (x > -9).all()), (_X,)),
    "reduce_xor": (lambda i: lax.reduce(i, 0, lax.bitwise_xor, (0,)), (_I,)),
    "cumulative": (
        lambda x: (jnp.cumsum(x, 0), jnp.cumprod(x, 1), lax.cummax(x), lax.cummin(x, reverse=True)),
        (_X,),
    ),
    "cumulative of integers": (lambda i: (jnp.cumsum(i, 1), jnp.cumprod(i % 3, 1)), (_I,)),
    "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, 1), (_X,)),
    "a mean and a variance": (lambda x: (x.mean(0), x.var(1), x.std()), (_X,)),
    "of nothing": (
        lambda x: (jax.nn.softmax(x), jax.nn.logsumexp(x), x.max(initial=1.0), x.sum(0)),
        (np.zeros((0, 3), np.float32),),
    ),
    "a sum of float16": (lambda x: x.sum(0), (_X.astype(np.float16),)),
    "a complex sum": (lambda z: z.sum(0), (_C,)),
    # Products
    "matmul": (lambda x, y: (x @ y.T, x[0] @ y[1]), (_X, _Y)),
    "batched matmul": (
        lambda x, y: jnp.einsum("bij,bkj->bik", x, y), (normal(3, 4, 5), normal(3, 2, 5)),
    ),
    "complex matmul": (lambda z, d: z @ d.T, (_C, _D)),
    "matmul of integers": (lambda i, j: i @ j.T, (_I, _J)),
    "a row of one": (lambda i, x: jax.nn.one_hot(i, 6) @ x, (np.array([1, 4]), _X)),
    "convolution": (_convolution, _image()),
    "grouped convolution": (_grouped, (normal(2, 4, 9), normal(6, 2, 3))),
    "batched convolution": (_batched, (normal(4, 2, 9), normal(6, 2, 3))),
    "windows": (lambda x: (_pooled(x), _smallest(x), _window_sum(x)), (_X,)),
    "gradient of windows": (jax.grad(lambda x: (_pooled(x) ** 2).sum()), (_X,)),
    # Algebra
    "cholesky": (jnp.linalg.cholesky, (definite(5),)),
    "solve": (jnp.linalg.solve, (definite(5), normal(5))),
    "triangular_solve": (
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
        (definite(5), normal(5, 2)),
    ),
    "triangular_solve from the right": (
        lambda a, b: lax.linalg.triangular_solve(a, b, transpose_a=True),
        (definite(5), normal(2, 5)),
    ),
    "lu": (lax.linalg.lu, (normal(5, 5),)),
    "lu_pivots_to_permutation": (
        lambda p: lax.linalg.lu_pivots_to_permutation(p, 4), (np.array([2, 2, 3, 3], np.int32),),
    ),
    "qr": (jnp.linalg.qr, (normal(6, 4),)),
    "householder_product": (
        lax.linalg.householder_product, (normal(6, 4) / 4, positive(4) / 2),
    ),
    "eigvalsh": (jnp.linalg.eigvalsh, (definite(5),)),
    "from eigenvectors": (
        _root, (definite(5),),
    ),
    "singular values": (lambda a: jnp.linalg.svd(a, compute_uv=False), (normal(6, 4),)),
    "pinv": (jnp.linalg.pinv, (normal(6, 4),)),
    "tridiagonal_solve": (
        lax.linalg.tridiagonal_solve, (normal(6), 4 + positive(6), normal(6), normal(6, 2)),
    ),
    "fft": (lambda z: (jnp.fft.fft(z), jnp.fft.ifft2(z)), (_C,)),
    "rfft": (lambda x: (jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x), n=5)), (_X,)),
    # Control
    "scan": (_walk, (_X,)),
    "reverse scan": (_backwards, (_X,)),
    "while": (_halve, (_P * 5,)),
    "switch": (_either, (np.int32(1), _X)),
    "cond": (lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x), (np.bool_(1), _X)),
    "batched while": (
        jax.vmap(lambda x: lax.while_loop(lambda c: c < 10.0, lambda c: c * 2, x)),
        (np.array([1.3, 2.7, 0.1], np.float32),),
    ),
    "batched fori": (
        jax.vmap(lambda n, x: lax.fori_loop(0, n, lambda i, c: c * 0.9 + i, x)),
        (np.array([0, 3, 5], np.int32), positive(3)),
    ),
    "fori": (lambda x: lax.fori_loop(0, 5, lambda i, c: c * 0.9 + i, x), (_X,)),
    "custom_linear_solve": (_solution, (definite(5), normal(5))),
    "jit in jit": (jax.jit(lambda x: jax.jit(jnp.tanh)(x) * 2), (_X,)),
    "remat": (jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())), (_X,)),
    "platform_dependent": (
        lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos), (_X,),
    ),
    "keys": (_keyed, (jax.random.key(1),)),
    "old keys": (lambda key: jax.random.normal(key, (4,)), (jax.random.PRNGKey(1),)),
    "random_gamma": (lambda key: jax.random.gamma(key, 2.5, (8,)), (jax.random.key(2),)),
}  # fmt: skip

if hasattr(jax.scipy.linalg, "qr_multiply"):  # not up to 0.9
    CALLS["qr_multiply"] = jax.scipy.linalg.qr_multiply, (normal(6, 4), normal(6, 6))
