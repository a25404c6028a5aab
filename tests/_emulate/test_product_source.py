"""The product that a line of source writes."""

import sysconfig
from pathlib import Path

import pytest

from jitcount._emulate.product_source import product_in, written_name
from jitcount._observe.call_site import CallSite


@pytest.mark.parametrize(
    ("line", "product"),
    [
        ("s = q @ k.T", "q @ k.T"),
        ("s = jnp.einsum('ab,bc->ac', p, v) + 1", "jnp.einsum('ab,bc->ac', p, v)"),
        ("s = (q @ k) + (p @ v)", ""),
        ("s = dot(q, k)", "dot(q, k)"),
        ("s = q + k", ""),
        ("s = " + "very_long_name_of_a_matrix @ another_very_long_name_of_one", ""),
        ("s = q @", ""),
    ],
)
def test_the_one_product_of_a_line(line: str, product: str, tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(f"import jax\n{line}\n")
    assert product_in(CallSite("model.py:2", str(file), 2)) == product


def test_a_file_that_is_not_there_has_none() -> None:
    assert product_in(CallSite("gone.py:2", "/gone.py", 2)) == ""


@pytest.mark.parametrize(
    ("line", "op_name", "name"),
    [
        ("s = q @ k.T", "jit(f)/dot_general", "@"),
        ("s = q @ k.T", "jit(f)/transpose(jvp())/transpose", "@"),
        ("s = jnp.einsum('ab,bc->ac', p, v) + 1", "jit(f)/jit(_einsum)/dot_general", "einsum"),
        ("s = jnp.dot(q, k) @ v", "jit(f)/dot_general", "@ and dot"),
        ("s = jnp.einsum('ab->ba', q) @ v", "jit(f)/jit(_einsum)/dot_general", "einsum"),
        (
            "s = jax.nn.dot_product_attention(q, k, v)",
            "jit(f)/dot_general",
            "dot_product_attention",
        ),
        ("s = f(g(q))", "jit(f)/dot_general", "dot_general"),
        ("s = f(g(q))", "jit(f)/jit(_lu)/dot_general", "lu"),
    ],
)
def test_a_product_is_called_as_its_line_does(
    line: str, op_name: str, name: str, tmp_path: Path
) -> None:
    file = tmp_path / "model.py"
    file.write_text(f"import jax\n{line}\n")
    place = CallSite("model.py:2", str(file), 2)
    assert written_name(place, ((str(file), 2, "f"),), op_name) == name


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("y = nn.RNN(nn.GRUCell(32))(x)", "GRUCell"),
        ("y = self.rnn(x)", "RNN"),
        ("y = nn.Dense(w @ v)(x)", "RNN"),
    ],
)
def test_a_product_of_a_library_is_called_by_its_layer(
    line: str, name: str, tmp_path: Path
) -> None:
    file = tmp_path / "model.py"
    file.write_text(f"import jax\n{line}\n")
    library = f"{sysconfig.get_path('purelib')}/flax/linen/layers.py"
    inner = ("Linear.__call__", "GRUCell.__call__", "_scan_fn", "RNN.__call__")
    stack = (*((library, 7, each) for each in inner), (str(file), 2, "Net.__call__"))
    place = CallSite("model.py:2", str(file), 2)
    assert written_name(place, stack, "jit(f)/rnn/dot_general") == name
