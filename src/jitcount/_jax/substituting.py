"""Compiles something else in place of what JAX asks for, for the length of a block.

This is the one place that replaces a function of JAX's. There is no public hook between lowering
and compiling: `jax.monitoring` only reports, and a plugin would be another backend. The function is
`compile_or_get_cached`, which all releases from 0.7.1 on call with the module, whether or not the
persistent cache is on: so what is compiled here never comes from that cache, nor goes there.

JAX's own caches must keep apart what is compiled inside and outside. Their keys hold the settings;
one of these, `jax_xla_profile_version`, means nothing to a CPU's compiler: its value keeps the
blocks apart. (`jax.make_user_context` is made for that, but to make one changes all keys, and with
that throws away all that was compiled before.)
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax._src import compiler as _compiler
from jax._src.interpreters import mlir as _mlir
from jaxlib import lapack
from jaxlib.mlir import ir

from jitcount._jax import settings
from jitcount._jax.executables import (
    for_long_chains,
    loaded_executable,
    without_shardy,
    without_ynnpack,
    written_options,
)
from jitcount._jax.replacing import main_function, with_body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jitcount._jax.replacing import Shards

    Substitute = Callable[["Compilable"], Any]
    """Returns an executable, or None where JAX's own should be."""


class Compilable:
    """A compile that JAX is about to make."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._arguments = arguments
        self._has_shards = False
        self._has_long_chains = False

    @property
    def platform(self) -> str:
        """The name of the platform that it compiles for."""
        return str(self._arguments["backend"].platform)

    @property
    def devices(self) -> int:
        """The number of devices that the program runs on."""
        return int(self._arguments["devices"].size)

    @property
    def processes(self) -> int:
        """The number of processes that those devices belong to."""
        return len({device.process_index for device in self._arguments["devices"].flat})

    def signature(self) -> tuple[list[str], list[str]]:
        """The MLIR types of the program's arguments, and of its results."""
        kind = main_function(self._arguments["computation"]).type
        return [str(each) for each in kind.inputs], [str(each) for each in kind.results]

    def has_bfloat16(self) -> bool:
        """Whether the program itself computes with bfloat16."""
        text = self._arguments["computation"].operation.get_asm(large_elements_limit=16)
        return "bf16" in text

    def with_body(
        self, text: str, shards: Shards | None = None, *, has_long_chains: bool = False
    ) -> str:
        """The module with another function in place of its own; aliases and shardings stay.

        Of a program over several devices that is the function of one device; `shards` says how
        arguments and results are laid out. Long chains take another way through the compiler.
        """
        self._has_shards = shards is not None
        self._has_long_chains = has_long_chains
        return with_body(self._arguments["computation"], text, shards)

    @property
    def _options(self) -> Any:
        """JAX's options; without Shardy where there are shards, whose text has XLA's shardings."""
        given = without_ynnpack(self._arguments["compile_options"])
        given = without_shardy(given) if self._has_shards else given
        return for_long_chains(given) if self._has_long_chains else given

    @property
    def options(self) -> bytes:
        """The options that it is compiled with, serialised."""
        return written_options(self._options)

    def load(self, text: str, written: bytes) -> Any:
        """Load what another process has compiled of a module; None where that does not fit."""
        _register_lapack(text)
        given = self._arguments
        return loaded_executable(
            given["backend"], written, given["executable_devices"], self._options
        )

    def compile(self, text: str) -> Any:
        """Compile a module of the same signature in its place, past the persistent cache."""
        _register_lapack(text)
        given = self._arguments
        with _mlir.make_ir_context():
            module = ir.Module.parse(text)
        return _compiler.backend_compile_and_load(
            given["backend"],
            module,
            given["executable_devices"],
            self._options,
            given["host_callbacks"],
        )


_NAMES = (
    "backend",
    "computation",
    "devices",
    "compile_options",
    "host_callbacks",
    "executable_devices",
)


# The setting outside of each open block, the outermost first. The function that blocks replace, and
# the setting itself, are the process's, and so is this.
_before: list[Any] = []


@contextlib.contextmanager
def substituted(substitute: Substitute, number: int, name: str = "") -> Iterator[None]:
    """Ask `substitute` for each executable, in all threads, until the block ends.

    Args:
        substitute: called in the thread that compiles, in place of the compiler.
        number: keeps what is compiled in the block apart from all else in JAX's caches; with the
            same number, what an earlier block has compiled is found again.
        name: what causes call that block.
    """
    settings.name_block(number, name)
    theirs = _compiler.compile_or_get_cached

    def ours(*arguments: Any, **named: Any) -> Any:
        given = dict(zip(_NAMES, arguments, strict=False)) | named
        made = (
            substitute(Compilable(given))
            if jax.config.values[settings.KEY_OF_BLOCKS] == number
            else None
        )
        return theirs(*arguments, **named) if made is None else made

    before = jax.config.values[settings.KEY_OF_BLOCKS]
    _compiler.compile_or_get_cached = ours
    jax.config.update(settings.KEY_OF_BLOCKS, number)
    _before.append(before)
    try:
        yield
    finally:
        _before.pop()
        jax.config.update(settings.KEY_OF_BLOCKS, before)
        _compiler.compile_or_get_cached = theirs


@contextlib.contextmanager
def suspended() -> Iterator[None]:
    """Compile as outside of every block of `substituted`, until this one ends."""
    inside = jax.config.values[settings.KEY_OF_BLOCKS]
    jax.config.update(settings.KEY_OF_BLOCKS, _before[0] if _before else inside)
    try:
        yield
    finally:
        jax.config.update(settings.KEY_OF_BLOCKS, inside)


def _register_lapack(text: str) -> None:
    """Look up LAPACK's functions, if a module calls any.

    JAX looks LAPACK up when it lowers the first call of it; to run one before that ends the
    process. The program in question may have none.
    """
    if '"lapack_' in text:
        lapack.prepare_lapack_call("getrf_ffi", np.dtype("float32"))  # type: ignore[no-untyped-call]
