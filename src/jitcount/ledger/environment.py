"""The machine and the installation that a figure was measured on."""

from __future__ import annotations

import importlib.metadata
import platform
from dataclasses import dataclass

import jax

# The distributions that bring a compiler and a runtime for an accelerator.
_PLUGINS = ("jax-cuda12-plugin", "jax-cuda13-plugin", "jax-rocm7-plugin", "libtpu")


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a run took place.

    >>> environment().jax == jax.__version__
    True
    """

    platform: str
    device_kind: str
    device_count: int
    jax: str
    jaxlib: str
    plugins: dict[str, str]
    python: str
    system: str

    def __str__(self) -> str:
        devices = self.device_kind
        if self.device_count > 1:
            devices = f"{self.device_count} × {devices}"
        versions = {"jax": self.jax, "jaxlib": self.jaxlib, **self.plugins, "Python": self.python}
        shown = ", ".join(f"{name} {version}" for name, version in versions.items())
        return f"{self.platform} ({devices}): {shown}, {self.system}"


def environment() -> Environment:
    """Describe the backend that JAX uses in this process; this initialises it."""
    devices = jax.devices()
    return Environment(
        platform=devices[0].platform,
        device_kind=devices[0].device_kind,
        device_count=len(devices),
        jax=jax.__version__,
        jaxlib=importlib.metadata.version("jaxlib"),
        plugins={name: version for name in _PLUGINS if (version := _version(name))},
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
    )


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
