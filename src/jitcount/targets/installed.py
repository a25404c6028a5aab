"""Which compilers are installed, and the command that installs one that is not."""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import dataclass
from pathlib import Path
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
        'pip install "jax[cuda12-local]" nvidia-cuda-nvcc-cu12',
    ),
}


class MissingCompilerError(ImportError):
    """A target's compiler is not installed."""


def is_installed(target: Target) -> bool:
    """Whether a target's compiler is installed; nothing is loaded to find that out."""
    plugin = PLUGINS.get(target.platform)
    if plugin is None:
        return True
    return any(map(_is_there, plugin.modules)) and (target.platform != "cuda" or _has_ptxas())


def require_installed(target: Target) -> None:
    """Raise one line that says how to install a target's compiler, where it is missing."""
    if not is_installed(target):
        plugin = PLUGINS[target.platform]
        raise MissingCompilerError(
            f"{target.name} needs {plugin.compiler}, which is not installed: {plugin.command}"
        )


def ptxas_from_pip() -> Path | None:
    """The folder of an assembler that pip has installed beside JAX."""
    try:
        nvidia = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return None
    places = nvidia.submodule_search_locations if nvidia else None
    found = (path for place in places or () for path in Path(place).glob("*/bin/ptxas"))
    return next((path.parent for path in found), None)


def _has_ptxas() -> bool:
    """Whether XLA:GPU will find NVIDIA's assembler, which does not come with it."""
    toolkits = (Path("/usr/local/cuda/bin/ptxas"), Path("/opt/cuda/bin/ptxas"))
    is_elsewhere = shutil.which("ptxas") is not None or any(path.exists() for path in toolkits)
    return is_elsewhere or ptxas_from_pip() is not None


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package that it would be in
        return False
