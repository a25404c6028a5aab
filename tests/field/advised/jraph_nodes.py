"""A graph network that counts the neighbours of each node."""

from typing import NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np


class Graph(NamedTuple):
    nodes: jax.Array
    senders: jax.Array
    receivers: jax.Array
    globals: jax.Array


def network(graph):
    count = graph.nodes.shape[0]
    for width in (8, 8):
        sent = hk.nets.MLP([width])(graph.nodes[graph.senders])
        received = jax.ops.segment_sum(sent, graph.receivers, count)
        context = jnp.broadcast_to(graph.globals, (count, graph.globals.shape[-1]))
        joined = jnp.concatenate([graph.nodes, received, context], axis=1)
        graph = graph._replace(nodes=hk.nets.MLP([width, width])(joined))
    return hk.Linear(1)(graph.nodes)[:, 0]


net = hk.without_apply_rng(hk.transform(network))


@jax.jit
def update(params, graph, wanted):
    def loss(params):
        return jnp.mean((net.apply(params, graph) - wanted) ** 2)

    value, gradients = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.002 * g, params, gradients), value


def main():
    random = np.random.default_rng(0)
    senders, receivers = random.integers(6, size=(2, 14))
    graph = Graph(np.ones((6, 2), "float32"), senders, receivers, np.ones((1, 2), "float32"))
    wanted = np.bincount(receivers, minlength=6).astype("float32")
    params = net.init(jax.random.key(42), graph)
    for _ in range(3):
        params, value = update(params, graph, wanted)
        print(f"{float(value):.2f}")


main()
