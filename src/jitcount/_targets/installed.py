"""Which compilers are installed, and the command that installs one that is not."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from jitcount._targets.chips import CHIPS
from jitcount._targets.names import parse, seed_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jitcount._targets.chips.chip import Tool
    from jitcount._targets.names import Target

PLUGINS = {chip.platform: chip.plugin for chip in CHIPS}
"""By platform, the package that has its compiler."""


class MissingCompilerError(ImportError):
    """A target's compiler is not installed."""


def is_installed(target: Target) -> bool:
    """Whether a target's compiler is installed; nothing is loaded to find that out."""
    plugin = target.chip.plugin
    has_module = not plugin.modules or any(map(_is_there, plugin.modules))
    return has_module and all(map(_has_tool, plugin.tools))


def require_installed(target: Target) -> None:
    """Raise one line that says how to install a target's compiler, where it is missing."""
    if not is_installed(target):
        plugin = target.chip.plugin
        raise MissingCompilerError(
            f"{target.name} needs {plugin.compiler}, which is not installed: {plugin.command}"
        )


def installed_targets(names: Iterable[str]) -> tuple[Target, ...]:
    """The targets of these names, each once, if they can be compiled for.

    Raises:
        ValueError: there is no such target.
        MissingCompilerError: a target's compiler is not installed.
    """
    found = tuple(parse(name) for name in dict.fromkeys(names))
    for target in found:
        require_installed(target)
    return found


def require_usable(name: str) -> None:
    """Raise one line where nothing can compute so on this machine.

    Raises:
        ValueError: there is no such target, or the seed is none.
        ImportError: the target's compiler is not installed.
    """
    if seed_of(name) is None:
        require_installed(parse(name))


def folder_from_pip(tool: Tool) -> Path | None:
    """The folder of a tool that pip has installed beside JAX."""
    try:
        package = importlib.util.find_spec(tool.package)
    except (ImportError, ValueError):
        return None
    places = package.submodule_search_locations if package else None
    found = (path for place in places or () for path in Path(place).glob(f"*/bin/{tool.name}"))
    return next((path.parent for path in found), None)


def _has_tool(tool: Tool) -> bool:
    """Whether a compiler will find a tool that does not come with it."""
    is_in_a_folder = any(Path(folder, tool.name).exists() for folder in tool.folders)
    is_elsewhere = shutil.which(tool.name) is not None or is_in_a_folder
    return is_elsewhere or folder_from_pip(tool) is not None


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package that it would be in
        return False
