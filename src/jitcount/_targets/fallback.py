"""Compiles again what XLA:GPU fails at only because there is no device.

On a device, XLA:GPU compiles a product in many ways (kernels of Triton with tiles of many sizes, a
call of cuBLAS), leaves out those that fail, and keeps the fastest of the others. Without one it
takes the first of Triton's, untried, and if that one fails, so does the whole compile. (In XLA,
`GetConfigAssignerOptions` and `GetDefaultConfig` for the one, `TuneBestConfig` for the other.) What
is always left on a device is cuBLAS: so it is compiled once more without Triton's products.

Only failures that depend on the size of a tile are taken for such. Others may be a device's, too.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

from jitcount._jax.lowering import compile_module, with_numbered_products
from jitcount._targets.protocol import WithoutTriton

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TILES = (
    "Couldn't find output tile sizes that satisfy",
    "Tiling does not satisfy constraints",
    "Shared memory size limit exceeded",
)
_OPTIONS = {"xla_gpu_enable_triton_gemm": False}
_NUMBER = re.compile(r'op_name="product (\d+)"')


def compile_or_fall_back(
    module: bytes,
    devices: Sequence[Any],
    may_move: tuple[Sequence[bool], Sequence[bool]],
    options: Mapping[str, Any],
    platform: str,
) -> tuple[Any, WithoutTriton | None]:
    """Compile a module as a device's compiler could; returns also what that was done without.

    Raises:
        Exception: what the compiler says of a module that it does not compile on a device either.
    """

    def compiled(module: bytes, more: Mapping[str, Any]) -> Any:
        return compile_module(module, devices, may_move, {**options, **more}, platform)

    try:
        return compiled(module, {}), None
    except Exception as error:
        if platform != "cuda" or not any(each in str(error) for each in _TILES):
            raise
        with contextlib.suppress(Exception):
            return compiled(module, _OPTIONS), WithoutTriton(product=_failing(module, compiled))
        raise


def _failing(module: bytes, compiled: Any) -> int | None:
    """The number of the product that a compile fails at, which XLA names as the module does."""
    try:
        compiled(with_numbered_products(module), {})
    except Exception as error:  # noqa: BLE001 (that is what is read)
        found = _NUMBER.search(str(error))
        return int(found[1]) if found else None
    return None
