"""``jitcount targets`` lists what can be compiled for, and what has to be installed for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._show.target_table import targets_table
from jitcount._show.terminal import has_colour, render
from jitcount._targets.installed import PLUGINS, is_installed
from jitcount._targets.names import TARGETS

if TYPE_CHECKING:
    import argparse


def main(_asked: argparse.Namespace) -> int:
    """List them."""
    rows = [(target, is_installed(target)) for target in TARGETS]
    missing = dict.fromkeys(target.platform for target, is_there in rows if not is_there)
    plugins = (PLUGINS[platform] for platform in missing)
    commands = [f"To install {plugin.compiler}: {plugin.command}" for plugin in plugins]
    print(render(targets_table(rows, commands), colour=has_colour()))  # noqa: T201
    return 0
