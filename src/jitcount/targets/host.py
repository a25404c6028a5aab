"""The platform that the user's own program runs on while others are compiled for."""

from __future__ import annotations

import os
import sys


def prefer_cpu() -> None:
    """Run on the CPU, unless JAX_PLATFORMS says otherwise; before any backend is started.

    JAX would look for the device of every compiler that is installed, and say at length that it
    found none. JAX itself may not be imported yet: then it reads the variable when it is.
    """
    if not os.environ.get("JAX_PLATFORMS"):
        os.environ["JAX_PLATFORMS"] = "cpu"  # for the processes that the user's program starts
        if "jax" in sys.modules:
            sys.modules["jax"].config.update("jax_platforms", "cpu")
