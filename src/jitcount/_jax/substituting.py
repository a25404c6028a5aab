"""Compiles something else in place of what JAX asks for, for the length of a block.

This is the one place that replaces a function of JAX's. There is no public hook between lowering
and compiling: `jax.monitoring` only reports, and a plugin would be another backend. The function is
`compile_or_get_cached`, which all releases from 0.7.1 on call with the module, whether or not the
persistent cache is on: so what is compiled here never comes from that cache, nor goes there.

JAX's own caches must keep apart what is compiled inside and outside. Their keys hold the settings;
one of these, `jax_xla_profile_version`, means nothing to a CPU's compiler: its value keeps the
blocks apart. (`jax.make_user_context` is made for that, but to make one changes all keys, and with
that throws away all that was compiled before.)

JAX reads a setting several times in one call: first for the key that the result is kept under, last
for the compiler. A call that was under way when a block began or ended has read several values, and
what it compiles may be kept under any of them. So it gets JAX's own program, which is right outside
of all blocks, and whoever substitutes is told.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax._src import compiler as _compiler
from jax._src.interpreters import mlir as _mlir
from jaxlib import lapack
from jaxlib.mlir import ir

from jitcount._jax import frames, settings
from jitcount._jax.executables import (
    for_long_chains,
    loaded_executable,
    outside_of_blocks,
    without_shardy,
    without_ynnpack,
    written_options,
)
from jitcount._jax.replacing import main_function, with_body
from jitcount._jax.rewriting import rewritten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from jitcount._jax.replacing import Shards

    Substitute = Callable[["Compilable"], Any]
    """Returns an executable, or None where JAX's own should be."""


class Compilable:
    """A compile that JAX is about to make."""

    def __init__(
        self,
        arguments: dict[str, Any],
        as_ever: Callable[[], Any],
        call: FrameType | None = None,
        *,
        was_under_way: bool = False,
    ) -> None:
        self._arguments = arguments
        self.as_ever = as_ever
        """Compiles it as JAX would."""

        self.call = call
        """JAX's frame of the call that needs it, or of the compile ahead of time."""

        self.was_under_way = was_under_way
        """Whether that call was under way when a block began or ended: it must not be substituted,
        because the result may be kept for calls outside of the block."""

        self._has_shards = False
        self._has_long_chains = False

    @property
    def name(self) -> str:
        """The name of the module: ``"jit_step"``."""
        return str(
            ir.StringAttr(self._arguments["computation"].operation.attributes["sym_name"]).value
        )

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
        given = without_ynnpack(outside_of_blocks(self._arguments["compile_options"]))
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

    def compile_rewritten(self, rewrite: Callable[[Any], None] | None) -> Any:
        """Compile the module after a function has changed a copy of it, past the persistent cache.

        Without a function it is compiled as it is.
        """
        given = self._arguments
        written = rewritten(given["computation"], rewrite)
        with _mlir.make_ir_context():
            module = ir.Module.parse(written)
        return _compiler.backend_compile_and_load(
            given["backend"],
            module,
            given["executable_devices"],
            outside_of_blocks(given["compile_options"]),
            given["host_callbacks"],
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


@dataclass(eq=False, slots=True)
class Block:
    """A block in which something may stand in for the compiler."""

    substitute: Substitute
    """Called in the thread that compiles, in place of the compiler."""

    number: int
    """Keeps what is compiled in the block apart from all else in JAX's caches.

    With the same number, what an earlier block has compiled is found again.
    """

    name: str = ""
    """What causes call the block."""

    is_for_one_thread: bool = False
    """It is in force where `settings.number_in_this_thread` says so, and nowhere else."""


class Blocks:
    """The open blocks of the process, which begin and end in any order, in any thread.

    The block in force is the one that was opened last of those that are still open. When the last
    one ends, JAX is as it was before the first.
    """

    def __init__(self) -> None:
        # A garbage collection in here may run a finalizer that ends a block, in the same thread.
        self._changing = threading.RLock()
        self._open: tuple[Block, ...] = ()
        self._theirs: Callable[..., Any] | None = None
        self._number_outside = 0
        self._under_way: list[FrameType] = []
        """JAX's calls that were under way when a block last began or ended. A frame keeps what its
        call was given: those that have returned are dropped at the next compile."""

        self._about_to_begin: list[tuple[FrameType, int]] = []
        """Where threads were then that may have been on the way into a call."""

        self._computations: list[weakref.ref[Any]] = []
        """What JAX has lowered and keeps the executable with, for all that was substituted."""

    def begin(self, block: Block) -> None:
        """Put a block in force."""
        settings.name_block(block.number, block.name)
        with self._changing:
            if not self._open:
                self._number_outside = settings.number_for_all_threads()
            if self._theirs is None:
                self._theirs = _compiler.compile_or_get_cached
                _compiler.compile_or_get_cached = _compile_or_get_cached
            self._switch((*self._open, block))

    def end(self, block: Block) -> list[tuple[int, FrameType]]:
        """End a block, and put the latest of the others in force.

        Returns:
            JAX's calls that have begun in the block and have not returned, with their threads.
        """
        with self._changing:
            before = [*self._still_under_way()]
            self._switch(tuple(other for other in self._open if other is not block))
            calls = frames.calls_under_way()
            if not self._open:
                self._under_way, self._about_to_begin = [], []
                self._forget_executables()
                # Unless somebody has replaced ours, which then goes on to call JAX's own.
                if _compiler.compile_or_get_cached is _compile_or_get_cached:
                    _compiler.compile_or_get_cached = self._theirs  # type: ignore[assignment]
                    self._theirs = None
            return [each for each in calls if not any(each[1] is call for call in before)]

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Compile as outside of every block, in all threads, until this ends."""
        outside = self._number_outside if self._open else settings.number_for_all_threads()
        with substituted(lambda _: None, outside):
            yield

    def compile(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Compile what JAX asks for, or what the block in force puts in its place."""
        theirs = self._theirs
        if theirs is None:  # the last block has ended since JAX has looked the function up
            return _compiler.compile_or_get_cached(*arguments, **named)
        number = settings.number_here()
        block = next((one for one in reversed(self._open) if one.number == number), None)
        if block is None:
            return theirs(*arguments, **named)

        def as_ever() -> Any:
            return theirs(*arguments, **named)

        frame = sys._getframe(2)  # noqa: SLF001 (documented)
        given = dict(zip(_NAMES, arguments, strict=False)) | named
        call = frames.call_of(frame)
        was_under_way = call is not None and self._was_under_way(call)
        made = block.substitute(Compilable(given, as_ever, call, was_under_way=was_under_way))
        if made is None:
            return as_ever()
        if (computation := frames.computation_of(frame)) is not None:
            self._computations.append(weakref.ref(computation))
        return made

    def _switch(self, now_open: tuple[Block, ...]) -> None:
        """Tell JAX which block is in force, and remember the calls that have begun before.

        A call that finds a block's number in the setting must find the block, too: it is added
        before the setting changes, and taken away after.
        """
        self._open = (*self._open, *(block for block in now_open if block not in self._open))
        for_all = [block for block in now_open if not block.is_for_one_thread]
        number = for_all[-1].number if for_all else self._number_outside
        if number != settings.number_for_all_threads():
            jax.config.update(settings.KEY_OF_BLOCKS, number)
            self._about_to_begin = frames.calls_about_to_begin()
            self._under_way = [call for _, call in frames.calls_under_way()]
        self._open = now_open

    def _was_under_way(self, call: FrameType) -> bool:
        if any(call is one for one in self._still_under_way()):
            return True
        caller, instruction = frames.caller_of(call)
        for each in self._about_to_begin:
            if each[0] is caller and each[1] == instruction:
                self._about_to_begin.remove(each)  # the next time it is another call
                return True
        return False

    def _still_under_way(self) -> list[FrameType]:
        """Of those calls the ones that have not returned; asked in any thread, without a lock."""
        calls = self._under_way
        if calls:
            now = [call for _, call in frames.calls_under_way()]
            calls[:] = [call for call in calls if any(call is one for one in now)]
        return calls

    def _forget_executables(self) -> None:
        """Let JAX compile again what the user holds a `jax.stages.Lowered` of.

        JAX keeps the executable there, and would return it outside of the block, too.
        """
        for reference in self._computations:
            computation: Any = reference()
            if getattr(computation, "_executable", None) is not None:
                computation._executable = None  # noqa: SLF001 (as JAX makes it)
        self._computations.clear()


_NAMES = (
    "backend",
    "computation",
    "devices",
    "compile_options",
    "host_callbacks",
    "executable_devices",
)

blocks = Blocks()


def _compile_or_get_cached(*arguments: Any, **named: Any) -> Any:
    return blocks.compile(arguments, named)


@contextlib.contextmanager
def substituted(substitute: Substitute, number: int, name: str = "") -> Iterator[None]:
    """Ask `substitute` for each executable, in all threads, until the block ends.

    Args:
        substitute: called in the thread that compiles, in place of the compiler.
        number: keeps what is compiled in the block apart from all else in JAX's caches; with the
            same number, what an earlier block has compiled is found again.
        name: what causes call that block.
    """
    block = Block(substitute, number, name)
    blocks.begin(block)
    try:
        yield
    finally:
        blocks.end(block)


def suspended() -> contextlib.AbstractContextManager[None]:
    """Compile as outside of every block of `substituted`, until this one ends."""
    return blocks.suspended()


def _register_lapack(text: str) -> None:
    """Look up LAPACK's functions, if a module calls any.

    JAX looks LAPACK up when it lowers the first call of it; to run one before that ends the
    process. The program in question may have none.
    """
    if '"lapack_' in text:
        lapack.prepare_lapack_call("getrf_ffi", np.dtype("float32"))  # type: ignore[no-untyped-call]
