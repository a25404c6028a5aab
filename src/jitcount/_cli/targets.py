"""``jitcount targets`` lists what can be compiled for, and what has to be installed for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._cli.arguments import end_help
from jitcount._cli.streams import show

if TYPE_CHECKING:
    import argparse


def declare(parser: argparse.ArgumentParser) -> None:
    """Add what the help of ``jitcount targets`` ends with; it takes no arguments."""
    end_help(parser, "jitcount targets", codes="0 good, 2 bad usage")


def options(_asked: argparse.Namespace) -> None:
    """Return nothing: ``jitcount targets`` has no options."""


def main(_options: None) -> int:
    """Print the table of targets."""
    from jitcount._show.target_table import targets_table
    from jitcount._show.terminal import has_colour, render
    from jitcount._targets.installed import PLUGINS, is_installed
    from jitcount._targets.names import TARGETS

    rows = [(target, is_installed(target)) for target in TARGETS]
    missing = dict.fromkeys(target.platform for target, installed in rows if not installed)
    plugins = (PLUGINS[platform] for platform in missing)
    commands = [f"To install {plugin.compiler}: {plugin.command}" for plugin in plugins]
    show(render(targets_table(rows, commands), colour=has_colour()))
    return 0
