"""``jitcount targets`` lists what can be compiled for, and what has to be installed for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitcount.show.target_table import targets_table
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
    rows = [
        (target, "yes" if is_installed(target) else PLUGINS[target.platform].command)
        for target in TARGETS
    ]
    print(targets_table(rows))  # noqa: T201
    return 0
