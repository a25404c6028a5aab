"""Which compilers are installed, and the command that installs one that is not."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jitcount.targets.names import Target


@dataclass(frozen=True, slots=True)
class Plugin:
    """What a platform's compiler comes in."""

    compiler: str
    modules: tuple[str, ...]
    """Any of these will do."""

    command: str


PLUGINS = {
    "tpu": Plugin("XLA:TPU", ("libtpu",), 'pip install "jax[tpu]"'),
    "cuda": Plugin(
        "XLA:GPU",
        ("jax_plugins.xla_cuda12", "jax_plugins.xla_cuda13"),
        'pip install "jax[cuda12-local]"',
    ),
}


class MissingCompilerError(ImportError):
    """A target's compiler is not installed."""


def is_installed(target: Target) -> bool:
    """Whether a target's compiler is installed; nothing is loaded to find that out."""
    plugin = PLUGINS.get(target.platform)
    return plugin is None or any(map(_is_there, plugin.modules))


def require_installed(target: Target) -> None:
    """Raise one line that says how to install a target's compiler, where it is missing."""
    if not is_installed(target):
        plugin = PLUGINS[target.platform]
        raise MissingCompilerError(
            f"{target.name} needs {plugin.compiler}, which is not installed: {plugin.command}"
        )


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package that it would be in
        return False
