"""Calls back once a program has imported JAX, for modules that must not import it themselves.

A finder stands first in `sys.meta_path` until JAX has been imported, and is then removed. It must
never fail that import: what a callback raises is logged, and shows again when jitcount is used.

It may be a module of jitcount that imports JAX. A callback would find that module half loaded, so
callbacks wait until all modules of jitcount that are being loaded are complete.
"""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec

_callbacks: list[Callable[[], object]] = []

_ours_loading: set[str] = set()
"""The modules of jitcount that are being loaded, in whichever thread."""


def after_import_of_jax(callback: Callable[[], object]) -> None:
    """Call back once, as soon as JAX has been imported: at once, if it has been.

    A callback that raises does not fail the import of JAX: it must report its errors itself.
    """
    if jax_is_imported():
        callback()
        return
    _callbacks.append(callback)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def forget(callback: Callable[[], object]) -> None:
    """Drop a callback that still waits for JAX."""
    _callbacks[:] = [waiting for waiting in _callbacks if waiting is not callback]


def jax_is_imported() -> bool:
    """Whether JAX has been imported completely, and no module of jitcount is half loaded."""
    jax = sys.modules.get("jax")
    is_loading = getattr(getattr(jax, "__spec__", None), "_initializing", False)
    return jax is not None and not is_loading and not _ours_loading


class _Finder:
    """Finds JAX and the modules of jitcount as the other finders do, with a loader of ours."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Find JAX, with a loader that calls back once it is loaded.

        It may never be loaded: a script may only want to know whether JAX is installed
        (`importlib.util.find_spec`). So the finder stays until there is a module.
        """
        if name != "jax" and not name.startswith("jitcount."):
            return None
        for finder in tuple(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    loader: Any = _Loader(spec.loader)
                    spec.loader = loader
                return spec
        return None


class _Loader:
    """A module's own loader, which calls back when the module is loaded."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: Any) -> None:
        """Load the module as without us, under its own loader's name, then call back."""
        name = module.__spec__.name
        module.__loader__ = module.__spec__.loader = self._loader
        if name == "jax":
            self._loader.exec_module(module)
            _call_back()
            return
        _ours_loading.add(name)
        try:
            self._loader.exec_module(module)
        finally:
            _ours_loading.discard(name)
            if jax_is_imported():
                _call_back()


# Python removes the frames of its import system from the traceback of an import that failed. With
# this file name ours is removed too.
_Loader.exec_module.__code__ = _Loader.exec_module.__code__.replace(
    co_filename=SourceFileLoader.exec_module.__code__.co_filename
)


def _call_back() -> None:
    if _ours_loading:
        return
    # A new list: in another thread, an import may be iterating over the old one.
    sys.meta_path = [finder for finder in sys.meta_path if finder is not _finder]
    while _callbacks:
        try:
            _callbacks.pop(0)()
        except KeyboardInterrupt:
            raise
        except BaseException:  # also what a library in Rust raises as it panics
            import logging  # noqa: PLC0415 (most processes never need it for this)

            logging.getLogger("jitcount").debug("could not start with JAX", exc_info=True)


_finder = _Finder()
