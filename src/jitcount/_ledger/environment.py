"""The machine and the installation that a figure was measured on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from pathlib import Path
from typing import Any

import msgspec

import jitcount
from jitcount._after_jax import jax_is_imported
from jitcount._emulate.active_target import active_target

# The distributions that bring a compiler and a runtime for an accelerator.
_PLUGINS = ("jax-cuda12-plugin", "jax-cuda13-plugin", "jax-rocm7-plugin", "libtpu")

_CONFIG = (
    "jax_enable_x64",
    "jax_disable_jit",
    "jax_default_matmul_precision",
    "jax_numpy_dtype_promotion",
    "jax_threefry_partitionable",
)


class Environment(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where a run took place.

    >>> import jax
    >>> environment().jax == jax.__version__
    True
    """

    jitcount: str
    """The version that wrote this down."""

    platform: str
    """What JAX computed on: cpu, gpu, tpu; empty where it had not started any backend."""

    device_kind: str
    device_count: int
    process_count: int
    jax: str
    jaxlib: str
    plugins: dict[str, str]
    python: str
    system: str
    cpu: str
    xla_flags: str
    config: dict[str, str]
    """The settings of JAX's that results or counts depend on."""

    as_if: str = ""
    """The target whose programs and arithmetic were emulated on this device: no result is its."""

    @property
    def has_jit(self) -> bool:
        """Whether what is jitted is compiled as a whole; else, operation by operation."""
        return self.config.get("jax_disable_jit") != "True"

    @property
    def kind(self) -> tuple[str, str, str]:
        """What the arithmetic depends on: two of a kind have no excuse to differ."""
        return self.platform, self.device_kind, self.as_if

    def __str__(self) -> str:
        devices = self.device_kind
        if self.device_count > 1:
            devices = f"{self.device_count} × {devices}"
        if self.process_count > 1:
            devices += f" in {self.process_count} processes"
        if self.config.get("jax_enable_x64") == "True":
            devices += ", x64"
        if not self.has_jit:
            devices += ", without jit"
        versions = {"jax": self.jax, "jaxlib": self.jaxlib, **self.plugins, "Python": self.python}
        installed = {name: version for name, version in versions.items() if version}
        shown = ", ".join(f"{name} {version}" for name, version in installed.items())
        if not self.platform:
            return f"no backend: {shown}, {self.system}"
        platform = f"{self.platform} as if {self.as_if}" if self.as_if else self.platform
        return f"{platform} ({devices}): {shown}, {self.system}"


def environment() -> Environment:
    """Describe the backend that JAX uses in this process; this initialises it."""
    import jax  # noqa: PLC0415 (what only reads a ledger must not wait for it)

    devices = jax.devices()
    return _environment(
        platform=devices[0].platform,
        device_kind=devices[0].device_kind,
        device_count=len(devices),
        process_count=jax.process_count(),
        jax=jax.__version__,
        jaxlib=jax.lib.__version__,  # type: ignore[attr-defined] # documented, not exported
        config={name: str(jax.config.values[name]) for name in _CONFIG},
    )


def environment_so_far() -> Environment:
    """Describe the backend that a program has used, if any: this neither imports JAX nor starts it.

    A program that never did either must not wait for it at its end, nor take hold of a device.
    """
    if jax_is_imported():
        from jitcount._jax.backends import has_started  # noqa: PLC0415 (it needs JAX)

        if has_started():
            return environment()
    versions = {
        name: getattr(sys.modules.get(name), "__version__", "") or _version(name) or ""
        for name in ("jax", "jaxlib")
    }
    return _environment(
        platform="", device_kind="", device_count=0, process_count=1, config={}, **versions
    )


def _environment(**of_jax: Any) -> Environment:
    return Environment(
        **of_jax,
        jitcount=jitcount.__version__,
        plugins={name: version for name in _PLUGINS if (version := _version(name))},
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        cpu=_cpu(),
        xla_flags=os.environ.get("XLA_FLAGS", ""),
        as_if=active_target(),
    )


def _cpu() -> str:
    """The processor's name; Linux is the only system whose `platform` module lacks it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
