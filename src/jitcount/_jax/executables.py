"""Executables that go from one process to another: compiled there, loaded here.

JAX's persistent cache does the same with files, by the same functions of its clients. Only
`jax.experimental.serialize_executable` is public, which wants a whole `jax.stages.Compiled`. Where
a release drops a function, or a machine cannot load what it has compiled, nothing is written, and
the process that asks compiles by itself.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax._src import compiler as _compiler
from jax._src.interpreters import mlir as _mlir
from jax.extend import backend as _backend
from jaxlib import utils as _utils
from jaxlib import xla_client
from jaxlib.mlir import ir

if TYPE_CHECKING:
    from collections.abc import Sequence


def written_options(options: Any) -> bytes:
    """XLA's `CompileOptions`, with the flags of this process, as bytes."""
    return bytes(options.SerializeAsString())


def without_shardy(options: Any) -> Any:
    """Compile options for a module whose shardings are written as XLA itself writes them."""
    how = xla_client.CompileOptions.ParseFromString(options.SerializeAsString())
    build = how.executable_build_options
    build.use_shardy_partitioner = False
    build.allow_spmd_sharding_propagation_to_parameters = [False]
    build.allow_spmd_sharding_propagation_to_output = [False]
    return how


def for_long_chains(options: Any) -> Any:
    """Compile options for a program in which a thousand elementwise operations follow each other.

    XLA:CPU makes one loop of them (of a division of 64 bits, as XLA:TPU writes it). That takes
    minutes to compile, and with JAX 0.12 to run. Before, it had an older code generator for such
    loops, which takes seconds; since then it can only be told to make none.
    """
    how = xla_client.CompileOptions.ParseFromString(options.SerializeAsString())
    emitters, fusing = (
        ("xla_cpu_use_fusion_emitters", "False"),
        ("xla_disable_hlo_passes", "fusion"),
    )
    which = emitters if jax.__version_info__ < (0, 12) else fusing
    how.env_option_overrides = [*how.env_option_overrides, which]
    return how


def outside_of_blocks(options: Any) -> Any:
    """Compile options without the number of the block, which JAX puts there: the same in each."""
    how = xla_client.CompileOptions.ParseFromString(options.SerializeAsString())
    how.profile_version = 0
    return how


def without_ynnpack(options: Any) -> Any:
    """Compile options for a program that stands for another machine's.

    XLA:CPU's library of kernels, YNNPACK, computes some products wrongly in every release since
    0.9.1 (docs/miscompiles.md), and the target would be blamed for it.
    """
    if jax.__version_info__ < (0, 9, 1):  # there is no such option, or it does nothing
        return options
    how = xla_client.CompileOptions.ParseFromString(options.SerializeAsString())
    without = "xla_cpu_experimental_ynn_fusion_type", ""
    how.env_option_overrides = [*how.env_option_overrides, without]
    return how


def compile_as(written: bytes, options: bytes, devices: Sequence[Any]) -> Any:
    """Compile a module with another process's options, on devices of this one."""
    with _mlir.make_ir_context():
        module = ir.Module.parse(written)
    together = xla_client.DeviceList(tuple(devices))
    how = _options(options, devices)
    return _compiler.backend_compile_and_load(devices[0].client, module, together, how, [])


def _options(written: bytes, devices: Sequence[Any]) -> Any:
    """Another process's options, for devices of this one: the executable does not know which."""
    how = xla_client.CompileOptions.ParseFromString(written)
    ids = np.array([device.id for device in devices])
    shape = how.num_replicas, how.num_partitions
    how.device_assignment = xla_client.DeviceAssignment.create(ids.reshape(shape))
    return how


def serialised(executable: Any) -> bytes:
    """An executable as XLA writes it."""
    if hasattr(executable, "serialize"):
        return bytes(executable.serialize())
    return bytes(executable.client.serialize_executable(executable))  # JAX 0.7


def written_executable(executable: Any, options: bytes, devices: Sequence[Any]) -> bytes:
    """An executable as bytes for another process; empty where XLA cannot write or load it."""
    client = devices[0].client
    try:
        written = serialised(executable)
    except Exception:  # noqa: BLE001 (XLA cannot write every kind of program)
        return b""
    if not _quiet:  # as the first one is loaded, so are all
        together, how = xla_client.DeviceList(tuple(devices)), _options(options, devices)
        _quiet.append(is_loaded_quietly(client, written, together, how))
    return written if _quiet[0] else b""


def loaded_executable(client: Any, written: bytes, devices: Any, options: Any) -> Any:
    """Load what another process has compiled; None where it does not fit."""
    try:
        return client.deserialize_executable(written, devices, options)
    except Exception:  # noqa: BLE001 (whatever it is, it can be compiled here)
        return None


_quiet: list[bool] = []
"""Whether executables are loaded quietly here; empty until one was. A fact of the machine."""


def is_loaded_quietly(client: Any, written: bytes, devices: Any, options: Any) -> bool:
    """Whether XLA loads an executable and prints nothing; for a process with its own stderr.

    On some processors XLA takes features that it prefers for features that it needs, finds them
    missing on the machine that has them, and says so at each load (openxla/xla issue 44565).
    """
    before = os.dup(2)
    with tempfile.TemporaryFile() as printed:
        os.dup2(printed.fileno(), 2)
        try:
            _utils.absl_set_min_log_level(_ALL)
            loaded = loaded_executable(client, written, devices, options)
            return loaded is not None and os.fstat(printed.fileno()).st_size == 0
        except AttributeError:  # a release without this setting
            return False
        finally:
            with contextlib.suppress(AttributeError):
                _utils.absl_set_min_log_level(_FATAL)
            os.dup2(before, 2)
            os.close(before)


# XLA's levels of what it prints.
_ALL, _FATAL = 1, 3


def cpu_devices(count: int) -> Sequence[Any]:
    """At least that many CPU devices; only for a process without arrays of its own."""
    if len(jax.devices("cpu")) < count:
        _backend.clear_backends()
        jax.config.update("jax_num_cpu_devices", count)
    return jax.devices("cpu")
