"""The product that a line of source writes."""

from pathlib import Path

import pytest

from jitcount._emulate.product_source import product_in
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
