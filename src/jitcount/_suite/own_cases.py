"""`jitcount.case`: a user's function as a case of the suite, and how such cases are found."""

from __future__ import annotations

import builtins
import importlib
import importlib.machinery
import importlib.util
import inspect
import math
import os
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from jitcount._observe.call_site import shown_path
from jitcount._text import escape_control_chars, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import FrameType

F = TypeVar("F", bound="Callable[..., object]")


class CaseError(ValueError):
    """Cases that make no sense, or that cannot be had; the text is one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCase:
    """A function of the user's, with what it is called with and what it is held to."""

    name: str
    function: Callable[..., object]
    args: Sequence[Any] | Callable[[], Sequence[Any]]
    """The arguments, or a function that makes them when the case is run."""

    kwargs: Mapping[str, Any]
    compiles: Mapping[str, int] | None
    within: float | None
    products: str
    module: str
    """The name of the module that declares it."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.name} at {self.place}"

    @property
    def place(self) -> str:
        """The line that declares it."""
        return f"{shown_path(self.file)}:{self.line}"

    def call(self, args: Sequence[Any]) -> object:
        """Call the function, from the line that declares the case: what compiles is said of it."""
        code = _CALL.__code__.replace(
            co_filename=self.file,
            co_firstlineno=self.line,
            co_name="<module>",
            co_qualname="<module>",
        )
        names = {"__name__": self.module, "__builtins__": builtins}
        result: object = FunctionType(code, names)(self.function, args, self.kwargs)
        return result


_CALL = lambda function, args, kwargs: function(*args, **kwargs)  # noqa: E731 (all in one line)

_declared: list[OwnCase] = []
"""All cases that this process has declared so far."""


# --- How a case is declared -----------------------------------------------------------------------


@overload
def case(
    f: F,
    args: Sequence[Any] | Callable[[], Sequence[Any]] = ...,
    *,
    kwargs: Mapping[str, Any] | None = ...,
    compiles: Mapping[str, int] | None = ...,
    name: str = ...,
    within: float | None = ...,
    products: str = ...,
) -> F: ...


@overload
def case(
    f: None = ...,
    args: Sequence[Any] | Callable[[], Sequence[Any]] = ...,
    *,
    kwargs: Mapping[str, Any] | None = ...,
    compiles: Mapping[str, int] | None = ...,
    name: str = ...,
    within: float | None = ...,
    products: str = ...,
) -> Callable[[F], F]: ...


def case(  # noqa: PLR0913 (keywords, each of its own)
    f: Callable[..., object] | None = None,
    args: Sequence[Any] | Callable[[], Sequence[Any]] = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    compiles: Mapping[str, int] | None = None,
    name: str = "",
    within: float | None = None,
    products: str = "float32",
) -> object:
    """Declare a case of one's own, for ``jitcount suite cases.py``; the function stays as it is.

    >>> import jax, jitcount, jax.numpy as jnp, numpy as np
    >>> @jax.jit
    ... def normalise(x):
    ...     return x / jnp.sqrt((x * x).sum())
    >>> @jitcount.case(compiles={"normalise": 1})
    ... def unit_vectors():
    ...     return normalise(np.arange(1.0, 9.0, dtype=np.float32))
    >>> _ = jitcount.case(normalise, (np.ones(3, np.float32),), name="ones")

    Args:
        f: a function that returns arrays, in any pytree; as a decorator, one without arguments.
        args: what it is called with; or a function that makes that, which is called when the case
            is run, and whose compiles do not count.
        kwargs: what it is called with by name.
        compiles: how often each function, or operation outside of jit, is compiled from empty
            caches: exactly these. Without it, ledgers are still compared.
        name: what the case is called; by default as the function.
        within: if nothing can be derived for the function: how far apart the results of two ledgers
            may be, as a share of the largest magnitude in each array. By default 1e-5, or one step
            of a 16-bit float.
        products: at which precision matrix products are computed, as for `jitcount.tolerance`.

    Raises:
        ValueError: the case makes no sense.
    """
    frame = inspect.currentframe()
    assert frame is not None  # noqa: S101 (CPython has frames)
    assert frame.f_back is not None  # noqa: S101 (somebody called)
    caller = frame.f_back

    def declare(f: F) -> F:
        _declared.append(_own_case(caller, f, args, kwargs or {}, compiles, name, within, products))
        return f

    return declare if f is None else declare(f)


def _own_case(  # noqa: PLR0913, PLR0917 (as `case`)
    caller: FrameType,
    f: object,
    args: object,
    kwargs: object,
    compiles: object,
    name: object,
    within: object,
    products: str,
) -> OwnCase:
    place = f"{shown_path(caller.f_code.co_filename)}:{caller.f_lineno}"
    if not callable(f):
        raise CaseError(f"the case at {place} must be a function; it is {_shown(f)}")
    if not isinstance(name, str):
        raise CaseError(f"the name of the case at {place} must be a text; it is {_shown(name)}")
    name = name or name_of(f)
    which = f"the case {name} at {place}"
    if not (isinstance(args, list | tuple) or callable(args)):
        like = f"jitcount.case({name}, (x,))"
        raise CaseError(f"{which} takes its arguments as a tuple, as in {like}; not {_shown(args)}")
    if not _is_mapping(kwargs):
        raise CaseError(f"{which} takes kwargs as a dict; it was given {_shown(kwargs)}")
    if compiles is not None and not _is_counts(compiles):
        like = '{"step": 1}'
        raise CaseError(
            f"compiles of {which} must be a mapping of functions to counts, as in {like}; "
            f"it is {_shown(compiles)}"
        )
    if within is not None and not is_share(within):
        raise CaseError(
            f"within of {which} must be 0 or a positive number, as in within=1e-5; "
            f"it is {_shown(within)}"
        )
    if not callable(args):
        _require_arguments(which, name, f, args, kwargs)  # type: ignore[arg-type]
    return OwnCase(
        name=name,
        function=f,
        args=args if callable(args) else tuple(args),
        kwargs=dict(kwargs),  # type: ignore[call-overload]
        compiles=None if compiles is None else dict(compiles),  # type: ignore[call-overload]
        within=None if within is None else float(within),  # type: ignore[arg-type]
        products=products,
        module=str(caller.f_globals.get("__name__", "")),
        file=caller.f_code.co_filename,
        line=caller.f_lineno,
    )


def _require_arguments(
    which: str, name: str, f: Callable[..., object], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Refuse a case at once that cannot be called; not all that can be called can be asked."""
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        remedy = f"give what it takes, as in jitcount.case({name}, (x,))"
        raise CaseError(f"{which} cannot be called: {one_line(str(error))}; {remedy}") from None


def name_of(f: object) -> str:
    """The name of a function, of what a partial calls, or of an object's class."""
    while not hasattr(f, "__name__") and hasattr(f, "func"):
        f = f.func
    return str(getattr(f, "__name__", type(f).__name__))


def _is_mapping(value: object) -> bool:
    return hasattr(value, "keys") and hasattr(value, "__getitem__")


def _is_counts(value: Any) -> bool:
    return _is_mapping(value) and all(
        isinstance(name, str) and isinstance(count, int) and count >= 0 and count is not True
        for name, count in dict(value).items()
    )


def is_share(value: object) -> bool:
    """Whether a bound can be declared so: 0, or a number above it."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


_MOST_SHOWN = 60


def _shown(value: object) -> str:
    """A value of the user's in a line, whatever it is."""
    try:
        text = escape_control_chars(" ".join(repr(value).split()))
    except Exception:  # noqa: BLE001 (a class of the user's)
        text = f"a {type(value).__name__}"
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…"


# --- How cases are found --------------------------------------------------------------------------


def cases_in_file(path: Path) -> list[OwnCase]:
    """Run a file, and return the cases that it declares, itself or by what it imports.

    Raises:
        CaseError: there is no such file, it fails, or its cases make no sense.
    """
    require_file(path)
    file = str(path.absolute())
    # Modules beside it may import it: by its own name it is run once.
    name = path.stem if path.stem not in sys.modules else f"jitcount_cases_{path.stem}"

    def load() -> str:
        loader = importlib.machinery.SourceFileLoader(name, file)
        spec = importlib.util.spec_from_file_location(name, file, loader=loader)
        assert spec is not None  # noqa: S101 (there is a loader)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return _NONE_BEFORE

    return _cases(str(path), os.path.dirname(os.path.realpath(file)), load)  # noqa: PTH120


def require_file(path: Path) -> None:
    """Raise `CaseError` if there is no such file; nothing is run."""
    shown = escape_control_chars(str(path))
    if path.is_dir():
        remedy = "name the file with the cases, or give -m and the name of a module"
        raise CaseError(f"{shown} is a folder: {remedy}")
    if not path.is_file():
        raise CaseError(f"there is no file {shown}")


def cases_in_module(name: str) -> list[OwnCase]:
    """Import a module, and return the cases that it declares, itself or by what it imports.

    Raises:
        CaseError: it cannot be imported, or its cases make no sense.
    """

    def load() -> str:
        importlib.import_module(name)
        return name

    return _cases(name, os.getcwd(), load)  # noqa: PTH109 (as python -m does)


_NONE_BEFORE = ""


def _cases(what: str, folder: str, load: Callable[[], str]) -> list[OwnCase]:
    """The cases that are declared while something is loaded, or were when it was.

    Args:
        what: what is loaded, as the user names it.
        folder: where its imports are looked for first.
        load: loads it; returns the name of the module, if that may have been imported before.
    """
    if not sys.flags.safe_path and folder not in sys.path:
        sys.path.insert(0, folder)
    before = len(_declared)
    try:
        module = load()
    except CaseError:
        raise
    except (Exception, SystemExit) as error:
        why = escape_control_chars(one_line(error))
        raise CaseError(f"{what} cannot be imported: {why}{_place_in(error)}") from error
    earlier = [each for each in _declared[:before] if module and _is_in(each, module)]
    found = [*earlier, *_declared[before:]]
    if not found:
        how = "put @jitcount.case above a function without arguments"
        raise CaseError(f"{what} has no case: {how}, or write jitcount.case(f, args)")
    _require_names_of_their_own(found)
    return found


def _is_in(own: OwnCase, module: str) -> bool:
    """Whether a module that had been imported before declares a case, or one inside it does."""
    return own.module == module or own.module.startswith(f"{module}.")


def _place_in(error: BaseException) -> str:
    """The line of the user's that raised an error, where it is known."""
    if isinstance(error, SyntaxError):  # its text says it
        return ""
    own = (str(Path(__file__)), "<frozen ")
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(own) and f"{os.sep}importlib{os.sep}" not in frame.filename
    ]
    return f", at {shown_path(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""


def _require_names_of_their_own(cases: Iterable[OwnCase]) -> None:
    known: dict[str, OwnCase] = {}
    for own in cases:
        other = known.setdefault(own.name, own)
        if other is not own:
            remedy = "give one of them another: jitcount.case(..., name=...)"
            name = escape_control_chars(own.name)
            places = f"{other.place} and {own.place}"
            raise CaseError(f"two cases are called {name}, at {places}: {remedy}")
