"""Recognises products that XLA:GPU leaves to cuBLAS and may scale wrongly.

cuBLAS multiplies a product by a number, `alpha`, before it adds a bias and applies an activation.
Some releases of XLA set `alpha` for a program that scales what comes after these.
"""

from __future__ import annotations

import re

_CALL = 'custom_call_target="__cublas$'
_EPILOGUE = re.compile(r'"epilogue":"(\w+)"')
_ALPHA = re.compile(r'"alpha_real":([^,}]+)')


def scales_before_epilogue(optimised: str) -> bool:
    """Whether cuBLAS scales a product, and then adds a bias or applies an activation.

    A program that asks for just that has the same text. A ReLU alone may be scaled before or after,
    if by a positive number.
    """
    return any(_is_scaled_before(line) for line in optimised.splitlines() if _CALL in line)


def _is_scaled_before(call: str) -> bool:
    epilogue, alpha = _EPILOGUE.search(call), _ALPHA.search(call)
    if epilogue is None or alpha is None or epilogue[1] == "DEFAULT":
        return False
    factor = float(alpha[1])
    return factor != 1 and not (epilogue[1] == "RELU" and factor > 0)
