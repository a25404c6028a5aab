"""Stands in place of some calls while a program runs: times them, and writes down their results.

JAX is not imported before the program has done so. What is measured goes to a folder at the end:
``measured.json``, and in ``values.bin`` what the calls returned, as far as there is room.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import threading
import time
import types
from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jitcount._after_jax import after_import_of_jax
from jitcount._jax.origin import is_module_of_jax

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from jitcount._try_calls.jitted_call import JittedCall

# Of so many calls the results are written down; a loop may make any number of them.
_CALLS = 1000

# And of so many bytes, beside their hashes.
_BYTES = 1 << 28

# So many jitted functions are kept: a loop may make a new one each time.
_FUNCTIONS = 64


class Measuring:
    """Times the calls of a program, one of which may be jitted."""

    def __init__(self, calls: Sequence[JittedCall], jitted: int | None, folder: Path) -> None:
        self._calls = calls
        self._jitted = jitted
        self._folder = folder
        self._functions: OrderedDict[object, tuple[Any, Any]] = OrderedDict()
        self._of_calls = [_OfOneCall() for _ in calls]
        self._lock = threading.RLock()
        self._thread = threading.local()
        self._values = (folder / "values.bin").open("wb")
        self._compiles = 0
        self._overhead_s = 0.0
        self._began = 0.0
        after_import_of_jax(self._count)

    def _count(self) -> None:
        from jitcount._jax import disk_cache, events  # noqa: PLC0415 (they need JAX)

        disk_cache.keep_off()

        def on_end(event: str, _: float, **__: Any) -> None:
            if event == events.COMPILE and not getattr(self._thread, "is_ours", False):
                self._compiles += 1

        events.register({"event_duration": on_end})
        self._began = time.perf_counter()  # the import of JAX takes a different time each time

    # --- In place of a call -----------------------------------------------------------------------

    def instead(self, number: int, function: Any) -> Callable[..., Any]:
        """What is called in place of a function."""
        return functools.partial(self._call, number, function)

    def _call(self, number: int, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        inside: set[int] = self._thread.__dict__.setdefault("inside", set())
        if number in inside or _has_tracer((args, kwargs)):
            return function(*args, **kwargs)
        of_call = self._of_calls[number]
        inside.add(number)
        overhead_s, began = self._overhead_s, time.perf_counter()
        try:
            called = self._jitted_of(function) if number == self._jitted else function
            result = called(*args, **kwargs)
            is_array = not _has_tracer(result)  # else it was called in what is being traced
            if is_array:
                _wait_for(result)
        except Exception as error:
            of_call.failed = of_call.failed or described(error, self._calls[number])
            raise
        finally:
            elapsed_s = time.perf_counter() - began
            inside.discard(number)
            with self._lock:
                of_call.count += 1
                of_call.seconds += elapsed_s - (self._overhead_s - overhead_s)
        if is_array:
            with self._not_measured():
                self._write_down(of_call, result)
        return result

    def _jitted_of(self, function: Any) -> Any:
        """The function under its jit: the same one as long as it is the same function."""
        receiver = getattr(function, "__self__", None)
        key = (id(getattr(function, "__func__", function)), id(receiver))
        with self._lock:
            if key not in self._functions:
                self._functions[key] = (function, self._new_jitted(function))
            self._functions.move_to_end(key)
            if len(self._functions) > _FUNCTIONS:
                self._functions.popitem(last=False)
            return self._functions[key][1]

    def _new_jitted(self, function: Any) -> Any:
        call = self._calls[self._jitted or 0]
        jit = _jit(call.wrapper)
        if call.in_lambda:
            return functools.partial(_call_in_lambda, jit, function)
        options = {"static_argnames": call.static_argnames} if call.static_argnames else {}
        return jit(function, **options)

    # --- What is written down ---------------------------------------------------------------------

    @contextmanager
    def _not_measured(self) -> Iterator[None]:
        """What happens in here is no part of the program's seconds and compiles."""
        began = time.perf_counter()
        self._thread.is_ours = True
        try:
            yield
        finally:
            self._thread.is_ours = False
            with self._lock:
                self._overhead_s += time.perf_counter() - began

    def _write_down(self, of_call: _OfOneCall, result: Any) -> None:
        if of_call.kept >= _CALLS:
            return
        of_call.kept += 1
        try:
            leaves = list(_arrays_in(result))
        except Exception:  # noqa: BLE001 (an array that is gone, or on another host)
            leaves = [("", None)]
        with self._lock:
            for path, array in leaves:
                if array is None:
                    of_call.leaves.append((of_call.kept, path, "", (), "", None))
                    continue
                content = array.tobytes()
                digest = hashlib.blake2b(content, digest_size=16).hexdigest()
                place = None
                if self._values.tell() + len(content) <= _BYTES:
                    place = self._values.tell()
                    self._values.write(content)
                kind = (str(array.dtype), array.shape)
                of_call.leaves.append((of_call.kept, path, *kind, digest, place))

    def write(self, code: int, error: BaseException | None) -> None:
        """Write all of it, with the exit code that the program ended with, and its error."""
        seconds = time.perf_counter() - (self._began or time.perf_counter()) - self._overhead_s
        self._values.close()
        found = {
            "code": code,
            "error": "" if error is None else described(error),
            "seconds": seconds,
            "compiles": self._compiles,
            "calls": [vars(of_call) for of_call in self._of_calls],
        }
        (self._folder / "measured.json").write_text(json.dumps(found))


class _OfOneCall:
    """What was measured of one of the calls, each time that the program made it."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.failed = ""
        self.kept = 0
        self.leaves: list[tuple[int, str, str, tuple[int, ...], str, int | None]] = []
        """Which call, path, dtype, shape, hash, and where the bytes are, if they are."""


def _jit(wrapper: str) -> Any:
    """The jit of that name, of the program's own libraries."""
    if wrapper == "nnx.jit":
        return importlib.import_module("flax.nnx").jit
    if wrapper == "eqx.filter_jit":
        return importlib.import_module("equinox").filter_jit
    import jax  # noqa: PLC0415 (the same)

    return jax.jit


def _call_in_lambda(jit: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function under a new jit of its arrays; what else it is given stays inside.

    Like the lambda that it stands for, it is made anew at each call.
    """
    from jitcount._observe.callers import ARRAY, EQUINOX, NNX, TREE, kind_of  # noqa: PLC0415 (needs JAX)

    traced = {ARRAY, EQUINOX, NNX, TREE}
    values = [*args, *kwargs.values()]
    places = [place for place, value in enumerate(values) if kind_of(value) in traced]
    receiver = getattr(function, "__self__", None)
    held = [each for each in (function, receiver) if kind_of(each) == NNX][:1]

    def inside(held: Any, arrays: Any) -> Any:
        called, given = function, list(values)
        if held:
            is_method = kind_of(function) != NNX
            called = types.MethodType(function.__func__, held[0]) if is_method else held[0]
        for place, array in zip(places, arrays, strict=True):
            given[place] = array
        return called(*given[: len(args)], **dict(zip(kwargs, given[len(args) :], strict=True)))

    return jit(inside)(held, [values[place] for place in places])


def _has_tracer(values: Any) -> bool:
    """Whether a call is part of a program that is being traced: that one is jitted already."""
    import jax  # noqa: PLC0415 (it is the program's)

    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))


def _wait_for(result: Any) -> None:
    import jax  # noqa: PLC0415 (the same)

    jax.block_until_ready(result)


def _arrays_in(result: Any) -> Iterator[tuple[str, Any]]:
    """The arrays of a result with their paths; None for one that cannot be read."""
    import jax  # noqa: PLC0415 (the same)
    import numpy as np  # noqa: PLC0415 (the same)

    for path, leaf in jax.tree_util.tree_leaves_with_path(_plain(result)):
        where, value = jax.tree_util.keystr(path), leaf
        if isinstance(value, jax.Array):
            if jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key):
                value = jax.random.key_data(value)
            yield where, np.asarray(value) if value.is_fully_addressable else None
        elif isinstance(value, np.ndarray | np.generic):
            yield where, np.asarray(value)
        elif isinstance(value, bool | int | float | complex):  # as a jit returns it
            yield where, np.asarray(value, jax.dtypes.canonicalize_dtype(type(value)))


def _plain(result: Any) -> Any:
    """A result as a tree of arrays: flax.nnx has had objects that are none."""
    bases = {base.__module__ for base in type(result).__mro__}
    if not any(module.startswith("flax.nnx") for module in bases):
        return result
    nnx = importlib.import_module("flax.nnx")  # the program's
    return nnx.to_pure_dict(nnx.state(result)) if isinstance(result, nnx.Module) else result


# --- Errors ---------------------------------------------------------------------------------------

_LONGEST_ERROR = 200


def described(error: BaseException, call: JittedCall | None = None) -> str:
    """An error in a line, with the innermost line of the user's or a library's.

    Of JAX's own errors the name says enough.
    """
    kind = type(error)
    text = kind.__name__
    if not is_module_of_jax(kind.__module__) or "Tracer" not in text:
        first = str(error).strip().partition("\n")[0].removesuffix(".")
        shown = first if len(first) <= _LONGEST_ERROR else f"{first[: _LONGEST_ERROR - 1]}…"
        text = f"{text}: {shown}" if shown else text
    try:
        place = _place_of(error, call)
    except Exception:  # noqa: BLE001 (the error itself matters more)
        place = ""
    return f"{text} at {place}" if place else text


def _place_of(error: BaseException, call: JittedCall | None) -> str:
    from jitcount._observe.call_site import owner_of, shown_path  # noqa: PLC0415 (it needs JAX)

    found = ""
    traceback = error.__traceback__
    while traceback is not None:
        file, line = traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        if owner_of(file) != "passed over":
            is_call = call is not None and (file, line) == (call.file, call.line)
            found = "" if is_call else f"{shown_path(file)}:{line}"
        traceback = traceback.tb_next
    return found
