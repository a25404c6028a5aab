"""A fault that one ledger alone excuses: it shows beside a ledger of the same kind of device."""

from pathlib import Path
from typing import Any

import jax
import pytest

from jitcount._cli import main
from tools.faults.arithmetic import BFLOAT16, rounded
from tools.faulty import primitives_replaced


def in_bfloat16(original: Any, a: jax.Array, b: jax.Array, **parameters: Any) -> Any:
    """As a TPU multiplies by default; a CPU has no reason to."""
    return original(rounded(a, BFLOAT16), rounded(b, BFLOAT16), **parameters)


@pytest.mark.thorough
def test_the_same_fault_on_one_backend_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, odd, odd_too = (str(tmp_path / f"{name}.json") for name in ("good", "odd", "odd-too"))
    assert main.main(["suite", "matmul-default", "--ledger", good]) == 0
    with primitives_replaced({"dot_general": in_bfloat16}):
        assert main.main(["suite", "matmul-default", "--ledger", odd]) == 0
        assert main.main(["suite", "matmul-default", "--ledger", odd_too]) == 0
    assert main.main(["compare", odd, odd_too]) == 0
    capsys.readouterr()
    assert main.main(["compare", good, odd]) == 1
    assert "matmul-default in odd: it differs: " in capsys.readouterr().out
