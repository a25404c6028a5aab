"""What ``JITCOUNT=1`` does in any Python process: waits for JAX, then counts until the end.

The line in `jitcount.pth` imports this only when the variable is set. JAX itself is not imported: a
program that never uses it is left alone.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec


class _AfterJax:
    """Starts the recorder as soon as JAX has been imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        """Find JAX like anyone else, and be there when it is loaded."""
        if name != "jax":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("jax")
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            load = loader.exec_module

            def load_and_start(module: Any) -> None:
                load(module)
                from jitcount.commands.run import summarise_at_exit  # noqa: PLC0415

                summarise_at_exit()

            loader.exec_module = load_and_start
        return spec


sys.meta_path.insert(0, _AfterJax())
