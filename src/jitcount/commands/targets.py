"""``jitcount targets`` lists what can be compiled for, and what has to be installed for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitcount.show.target_table import targets_table
from jitcount.show.terminal import render
from jitcount.targets.installed import PLUGINS, is_installed
from jitcount.targets.names import TARGETS

if TYPE_CHECKING:
    import argparse


def add(commands: Any) -> None:
    """Add ``jitcount targets`` to the parser."""
    targets = commands.add_parser(
        "targets", help="list the TPUs and GPUs that can be compiled for without having them"
    )
    targets.set_defaults(do=_list)


def _list(_asked: argparse.Namespace) -> int:
    rows = [(target, is_installed(target)) for target in TARGETS]
    missing = dict.fromkeys(target.platform for target, is_there in rows if not is_there)
    plugins = (PLUGINS[platform] for platform in missing)
    commands = [f"To install {plugin.compiler}: {plugin.command}" for plugin in plugins]
    print(render(targets_table(rows, commands)))  # noqa: T201
    return 0
