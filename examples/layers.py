"""Layers in a Python loop: each one is traced and compiled separately.

jitcount run --profile examples/layers.py
"""

import jax
import numpy as np


def attention(x, layer):
    q, k, v = x @ layer["q"], x @ layer["k"], x @ layer["v"]
    return jax.nn.softmax(q @ k.T) @ v


def net(layers, x):
    for layer in layers:
        x = x + attention(x, layer)
        x = x + jax.nn.gelu(x @ layer["up"]) @ layer["down"]
    return x


@jax.jit
def step(layers, x):
    loss, gradient = jax.value_and_grad(lambda layers: (net(layers, x) ** 2).mean())(layers)
    return loss, jax.tree.map(lambda weight, slope: weight - 0.1 * slope, layers, gradient)


SHAPES = {"q": (32, 32), "k": (32, 32), "v": (32, 32), "up": (32, 128), "down": (128, 32)}


def main():
    rng = np.random.default_rng(0)
    layers = [
        {name: np.float32(0.1 * rng.normal(size=shape)) for name, shape in SHAPES.items()}
        for _ in range(6)
    ]
    loss, layers = step(layers, np.ones((8, 32), np.float32))
    print("loss", round(float(loss), 3))


main()
