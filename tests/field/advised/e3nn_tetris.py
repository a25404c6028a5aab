"""Edges whose number is not known before, the slope of what was bound before, and a bare scan."""

import functools
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "site-packages"))

import graphs
import jax
import jax.numpy as jnp
import numpy as np

points = np.array([[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 1, 0]], "float32")
senders, receivers = graphs.radius_graph(points, 1.1)
print(len(senders))

weights = np.arange(9, dtype="float32").reshape(3, 3)


def matvec(vector):
    return weights @ vector


along = functools.partial(graphs.funm, matvec)
slopes = jax.jacrev(along)(points[3] + 1)
print(f"{float(jnp.trace(slopes)):.3f}")


def walk(kernel, start, lengths):
    return jax.lax.scan(kernel, start, lengths)[0]


def short(state, length):
    return state + length, None


def long(state, length):
    return jnp.sin(state) * length, None


print(float(walk(short, np.float32(0), np.ones(4, "float32"))))
print(f"{float(walk(long, np.float32(1), np.ones(5, 'float32'))):.3f}")
