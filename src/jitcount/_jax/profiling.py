"""What a profile needs of JAX: the program at each step, and XLA's own account of its time.

No public interface hands out the jaxpr that is lowered, the module that is compiled, or the
executable that was made: they are in frames. Where a release renames one, that part of a profile is
missing, and the profile says so.

`jax.profiler.start_trace` is public, but writes files into a folder; the session behind it returns
bytes. A process has one session at a time, and the program's own comes first: of two sessions, the
second finds out only at its end that it recorded nothing. So ours must have ended before one of the
program's begins. JAX makes all of them by `jaxlib._profiler`, in whose place a function of ours is
called while our session is open. Where a release makes them elsewhere, a test fails.
"""

from __future__ import annotations

import contextlib
import functools
import re
import struct
import sys
import types
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
from jax._src import profiler as _jax_profiler
from jax._src.interpreters import mlir as _mlir
from jax.profiler import ProfileData
from jaxlib.mlir import ir

from jitcount._jax.compilers import MODULES_OF
from jitcount._jax.executables import serialised
from jitcount._jax.frames import frame_near

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from types import FrameType

    GiveWay = Callable[[], AbstractContextManager[None]]


def lowered_jaxpr(frame: FrameType | None) -> Any:
    """The closed jaxpr that has just been lowered; None where its frame is not as we know it."""
    return _local(frame, "_cached_lowering_to_hlo", "closed_jaxpr")


def lowered_text(frame: FrameType | None) -> str:
    """The text of the program that JAX has just lowered, with the locations of its operations."""
    result = _local(frame, "_cached_lowering_to_hlo", "lowering_result")
    module = getattr(result, "module", None)
    return "" if module is None else _text(module)


def carried_text(bytecode: bytes) -> str:
    """The text of a lowered program that came from another process, with locations."""
    with _mlir.make_ir_context():
        return _text(ir.Module.parse(bytecode))


def _text(module: Any) -> str:
    text = module.operation.get_asm(
        enable_debug_info=True, print_generic_op_form=True, large_elements_limit=16
    )
    return str(text)


def compiled_executable(frame: FrameType | None) -> Any:
    """The executable that XLA has just made; None where its frame is not as we know it."""
    return _local(frame, "_cached_compilation", "xla_executable")


def _local(frame: FrameType | None, function: str, name: str) -> Any:
    found = frame_near(frame, function)
    return None if found is None else found.f_locals.get(name)


# --- XLA's time -----------------------------------------------------------------------------------


class Event(NamedTuple):
    """Something that a thread of the compiler's did, and when, in seconds from one start."""

    thread: str
    name: str
    start: float
    end: float
    module: str
    """The module of code that it worked on, if the event says so."""


class NotWatchedError(Exception):
    """Nothing is known of XLA's time; the text says why."""


class Session(NamedTuple):
    """A session of ours that is open, and what stands in jaxlib's place until it has ended."""

    open: Any
    hooks: dict[str, tuple[Callable[..., Any], Callable[..., Any]]]
    """By name, jaxlib's own function and ours."""


def watch(give_way: GiveWay | None = None) -> Session:
    """Begin to record XLA's events; `watched` takes the session that this returns.

    Args:
        give_way: opens a block that ends our session and lets none begin. The program's own begins
            in it, in the program's thread. None where there is no program: in a process of ours.

    Raises:
        NotWatchedError: this release has no such profiler, or the program has a profiler's server.
    """
    try:
        from jaxlib import _profiler  # type: ignore[attr-defined] # noqa: PLC0415 (what is missing here must not fail an import)
    except ImportError as error:
        raise NotWatchedError("this release of JAX has no profiler that we know") from error
    if give_way is not None and _has_server():
        raise NotWatchedError(
            "a jax.profiler server of the program's own is running, which may be asked for a trace "
            "at any time: the compiler's time is not known"
        )
    options = _profiler.ProfileOptions()
    options.host_tracer_level = 2
    options.python_tracer_level = 0
    make = _profiler.ProfilerSession
    hooks = {} if give_way is None else _hooks(_profiler, give_way)
    for name, (_, ours) in hooks.items():
        setattr(_profiler, name, ours)
    try:
        with _no_tensorflow():
            return Session(make(options), hooks)
    except Exception as error:
        _remove(hooks)
        raise NotWatchedError(f"the profiler did not start: {error}") from error


def _has_server() -> bool:
    """Whether the program has called `jax.profiler.start_server`: it makes sessions unseen."""
    return getattr(_jax_profiler, "_profiler_server", None) is not None


def _hooks(
    module: Any, give_way: GiveWay
) -> dict[str, tuple[Callable[..., Any], Callable[..., Any]]]:
    """What the program begins a session with, or a server, and what does so after `give_way`."""

    def after_ours(own: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(own, updated=())
        def begin(*arguments: Any, **named: Any) -> Any:
            with give_way():
                return own(*arguments, **named)

        return begin

    found = {name: getattr(module, name, None) for name in ("ProfilerSession", "start_server")}
    return {name: (own, after_ours(own)) for name, own in found.items() if own is not None}


def _remove(hooks: dict[str, tuple[Callable[..., Any], Callable[..., Any]]]) -> None:
    from jaxlib import _profiler  # type: ignore[attr-defined] # noqa: PLC0415 (as above)

    for name, (own, ours) in hooks.items():
        if getattr(_profiler, name, None) is ours:  # and not the program's own stand-in
            setattr(_profiler, name, own)


# The module that is imported, and the packages that it is in: each is looked up.
_TRACES_OF_TENSORFLOW = (
    "tensorflow",
    "tensorflow.python",
    "tensorflow.python.profiler",
    "tensorflow.python.profiler.trace",
)


@contextlib.contextmanager
def _no_tensorflow() -> Iterator[None]:
    """Keep profiler sessions from importing TensorFlow, for a block.

    Up to 0.9 they do so to turn on TensorFlow's traces, which takes seconds, or complain on stderr
    that there is none. They find empty modules in its place; so would another thread of the
    program's that imports it at that moment, and later releases need none of this.
    """
    if jax.__version_info__ >= (0, 10):
        yield
        return
    missing = [name for name in _TRACES_OF_TENSORFLOW if name not in sys.modules]
    stand_ins = {name: types.ModuleType(name) for name in missing}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name, stand_in in stand_ins.items():
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]


def watched(session: Session) -> bytes:
    """End a session, and return what it recorded, which `events_in` reads.

    Raises:
        NotWatchedError: another session was open already.
    """
    try:
        with _no_tensorflow():
            return bytes(session.open.stop())
    except Exception as error:
        raise NotWatchedError(
            "a jax.profiler trace of the program's own was under way, which has the compiler's time"
        ) from error
    finally:
        _remove(session.hooks)


def events_in(data: bytes) -> list[Event]:
    """Read the events that a session recorded."""
    _make_types(data)
    found = []
    for plane in ProfileData.from_serialized_xspace(data).planes:
        for line in plane.lines:
            thread = f"{plane.name} {line.name}"
            for event in line.events:
                name, start = event.name, event.start_ns
                module = str(dict(event.stats).get("module", "")) if name in MODULES_OF else ""
                end = start + event.duration_ns
                found.append(Event(thread, name, start * 1e-9, end * 1e-9, module))
    return found


_iterators: list[Any] = []
"""One of each of the profiler's types, kept for the life of the process: see `_make_types`."""


def _make_types(data: bytes) -> None:
    """Have the types of the profiler's iterators made while warnings are off, and keep them.

    jaxlib makes such a type when it first needs it and drops it with its last instance; on Python
    3.12 it warns that the type has no ``__module__``. Where warnings are errors (``-W error``, many
    a pytest) that ends the process. While an iterator is kept, its type is not made again.
    """
    if _iterators:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        planes = ProfileData.from_serialized_xspace(data).planes
        for plane in planes:
            lines = plane.lines
            for line in lines:
                events = line.events
                for event in events:
                    _iterators.extend((planes, lines, events, event.stats))
                    return


# --- The machine code of a CPU's program ----------------------------------------------------------

_ELF = re.compile(rb"\x7fELF\x02\x01")  # 64 bits, little-endian
_FUNCTION = 2
_SYMBOLS = 2


def object_files(executable: Any) -> list[dict[str, int]]:
    """The functions in each file of machine code, with their sizes, in the order they were made.

    XLA:CPU keeps them in the executable, as ELF. On a system without ELF there are none.
    """
    content = serialised(executable)
    found = []
    for match in _ELF.finditer(content):
        try:
            found.append(_functions(content, match.start()))
        except (struct.error, IndexError, ValueError):  # these bytes were something else
            continue
    return found


def _functions(content: bytes, at: int) -> dict[str, int]:
    """The functions in the table of symbols of an ELF file that begins at a position."""
    (table,) = struct.unpack_from("<Q", content, at + 0x28)
    size, count = struct.unpack_from("<HH", content, at + 0x3A)
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", content, at + table + number * size)
        for number in range(count)
    ]
    found: dict[str, int] = {}
    for section in sections:
        if section[1] != _SYMBOLS:
            continue
        offset, length, texts = section[4], section[5], sections[section[6]][4]
        for symbol in range(length // 24):
            name, info, _, _, _, bytes_of_code = struct.unpack_from(
                "<IBBHQQ", content, at + offset + 24 * symbol
            )
            if info & 15 == _FUNCTION and bytes_of_code:
                begin = at + texts + name
                text = content[begin : content.index(b"\0", begin)].decode(errors="replace")
                found[text] = found.get(text, 0) + bytes_of_code
    return found


def optimised_text(executable: Any) -> str:
    """The text of an optimised program, without large constants; empty where there is none."""
    modules = executable.hlo_modules()
    return str(modules[0].to_string()) if modules else ""
