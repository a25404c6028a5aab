"""What a process asks of a compiler's process, what that answers, and how both travel.

A message is JSON and, beside it, a block of bytes: what is large, and would only grow as text. No
pickle: what comes from the other side is data, never code, and is checked against the types here.
Nothing here loads JAX: the compiler's process reads its first request without it.
"""

from __future__ import annotations

import json
import struct
from typing import IO, TypeVar

import msgspec

from jitcount._profile.result import Profile
from jitcount._stored import from_plain, to_plain

Plain = bool | int | float | str
"""A value of a setting or of an option."""


class _Typed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The base of all that travels: decoded strictly, and never changed."""


class Stacks(_Typed, frozen=True):
    """The Python stacks of a program's equations, for a profile; the program travels without."""

    frames: tuple[tuple[str, int, str], ...]
    """Every frame once: file, line and function."""

    stacks: tuple[tuple[int, ...], ...]
    """The stack of each equation as numbers of `frames`, the innermost first."""


class CompileModule(_Typed, frozen=True, tag="compile"):
    """Compile the block, a StableHLO module, and answer with the compiler's figures."""

    devices: int
    """Over how many devices the program is sharded."""

    may_move: tuple[tuple[bool, ...], tuple[bool, ...]]
    """Whether XLA may choose the sharding of each argument, and of each result."""

    options: dict[str, Plain]
    """The user's `compiler_options`."""

    settings: dict[str, Plain]
    """JAX's settings in the process that asks."""

    keep_hlo: bool = False
    """Answer with the optimised program, as the block, and with its shardings."""

    profile: Stacks | None = None
    """With these, find out where the compile's time goes."""


class MeasureModule(_Typed, frozen=True, tag="measure"):
    """Compile the block, a StableHLO module, for one device; answer with processor seconds."""

    may_move: tuple[tuple[bool, ...], tuple[bool, ...]]
    settings: dict[str, Plain]
    inputs: tuple[tuple[str, tuple[int, ...]], ...] | None
    """Dtypes and shapes of the random numbers that it is then run on, for the block of the answer;
    None where it is not run: for a device that is not here."""

    stacked: tuple[tuple[int, ...], ...] | None = None
    """Which of the inputs each argument holds; None where each argument is one of them."""

    devices: int = 1


class BuildExecutable(_Typed, frozen=True, tag="build"):
    """Compile the block, a module as text, for this machine; answer with the executable."""

    devices: int
    compile_options: bytes
    """XLA's `CompileOptions` of the process that asks, serialized."""

    settings: dict[str, Plain]


Task = CompileModule | MeasureModule | BuildExecutable


class Request(_Typed, frozen=True, omit_defaults=True):
    """What a compiler's process is asked to do."""

    topology: dict[str, Plain]
    """The devices to compile for: arguments of `get_topology_desc`, with the platform."""

    task: Task | None = None
    """None for the first request: to load the compiler, and to say that it is ready."""

    block: bytes = b""
    """The module to compile."""


class Figures(_Typed, frozen=True, omit_defaults=True):
    """Sizes and costs as `OnTarget` has them; None for what the compiler does not say."""

    argument_bytes: int | None = None
    output_bytes: int | None = None
    aliased_bytes: int | None = None
    temporary_bytes: int | None = None
    code_bytes: int | None = None
    flops: float | None = None
    estimated_s: float | None = None


class WithoutTriton(_Typed, frozen=True, omit_defaults=True):
    """A module was compiled without Triton's kernels for products; see `_targets/fallback.py`."""

    product: int | None = None
    """The product that none of them fitted, by its number in the module; None if not known."""


class Shardings(_Typed, frozen=True):
    """How a program's arguments and results are laid out on devices, as XLA writes shardings."""

    arguments: tuple[str, ...]
    """The sharding of each argument: ``("{devices=[8,1]<=[8]}", "{replicated}")``."""

    results: tuple[str, ...]


class Answer(_Typed, frozen=True, omit_defaults=True):
    """What became of a request; which parts it has depends on the task."""

    error: str | None = None
    """Why there is no result: what the compiler said, or how its process ended."""

    compile_s: float = 0.0
    """Seconds that the compiler took, to the end or until it refused."""

    processor_s: float = 0.0
    """The seconds of the processor in that, where the task is `MeasureModule`."""

    figures: Figures = Figures()
    without_triton: WithoutTriton | None = None
    profile: Profile | None = None
    shardings: Shardings | None = None
    """None for one device, and where the compiler does not say."""

    block: bytes = b""
    """Optimised HLO, results (NumPy's ``.npz``) or an executable, as the task wants it."""


_Message = TypeVar("_Message", Request, Answer)

_LENGTHS = struct.Struct("<QQ")


def send(stream: IO[bytes], message: Request | Answer) -> None:
    """Write a message: two lengths, its JSON, its block."""
    without_block = msgspec.structs.replace(message, block=b"")
    text = json.dumps(msgspec.to_builtins(without_block, enc_hook=to_plain)).encode()
    stream.write(_LENGTHS.pack(len(text), len(message.block)))
    stream.write(text)
    stream.write(message.block)
    stream.flush()


def receive(stream: IO[bytes], form: type[_Message]) -> _Message | None:
    """Read the next message; None where the other side has ended, even in the middle of one.

    Raises:
        ValueError: it is no JSON, or not a message of that type.
    """
    lengths = stream.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    text_length, block_length = _LENGTHS.unpack(lengths)
    text, block = stream.read(text_length), stream.read(block_length)
    if len(text) < text_length or len(block) < block_length:
        return None
    message = msgspec.convert(json.loads(text), form, dec_hook=from_plain)
    return msgspec.structs.replace(message, block=block)
