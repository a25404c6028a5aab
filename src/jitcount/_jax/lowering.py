"""Programs as modules: lowered again for another platform, compiled for other devices, hashed.

No public interface lowers again what a jitted call has traced, or compiles a module for a device
that is not there. The functions that do are those of JAX's own `jax.export` and `jax.stages`.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import re
import types
import weakref
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax._src import compiler as _compiler
from jax._src.interpreters import mlir as _mlir
from jaxlib import xla_client
from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager

from jitcount._jax import settings
from jitcount._jax.frames import frame_near

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True)
class Lowering:
    """A lowering that JAX has just made, with all that is needed to make it for another platform.

    The function of the frame lowers again, with the arguments that it has there. With a release
    that drops the frame, or its argument `platforms`, there is none: then nothing can be compiled
    for a target.
    """

    lower: Callable[..., Any]
    arguments: dict[str, Any]
    module: Any
    """What JAX made; by it the compile that belongs to this lowering is found."""

    settings: tuple[tuple[str, Any], ...]
    """By name, the settings of the thread that lowered it."""

    @property
    def jaxpr(self) -> Any:
        """The program, as a jaxpr."""
        return self.arguments["closed_jaxpr"]


class Lowerings:
    """Lowerings by the module that they made, for as long as JAX itself keeps module and jaxpr.

    Both can hold large constants of the user's, and JAX lets go of them with the jitted function: a
    strong reference to either, from here, would keep both. Only the jaxpr of what is not compiled
    yet is held: what `.lower()` returns has the module alone.
    """

    def __init__(self) -> None:
        self._found: dict[int, tuple[weakref.ref[Any], weakref.ref[Any], Lowering]] = {}
        self._not_compiled: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self._found)

    def add(self, made: Lowering) -> None:
        """Keep a lowering; it is forgotten when its module is gone."""
        key, found = id(made.module), self._found
        module = weakref.ref(made.module, lambda _: found.pop(key, None))
        self._not_compiled[key] = made.jaxpr
        rest = {name: value for name, value in made.arguments.items() if name != "closed_jaxpr"}
        found[key] = module, weakref.ref(made.jaxpr), replace(made, arguments=rest, module=None)

    def lookup(self, module: object) -> Lowering | None:
        """The lowering of a module that is compiled now; None for one that was made before."""
        held = self._not_compiled.pop(id(module), None)
        made_by, jaxpr_of, made = self._found.get(id(module), (None, None, None))
        if made_by is None or jaxpr_of is None or made is None or made_by() is not module:
            return None
        jaxpr = jaxpr_of() if held is None else held
        arguments = {**made.arguments, "closed_jaxpr": jaxpr}
        return None if jaxpr is None else replace(made, arguments=arguments, module=module)

    def clear(self) -> None:
        """Forget all lowerings."""
        self._found.clear()
        self._not_compiled.clear()


@dataclass(frozen=True, slots=True)
class Compilation:
    """What JAX's frames say of how a module is compiled."""

    module: Any
    devices: int
    inputs_may_move: tuple[bool, ...]
    """Whether XLA may choose the sharding of each argument."""

    outputs_may_move: tuple[bool, ...]
    """Whether XLA may choose the sharding of each result."""

    options: dict[str, Any]
    """The user's `compiler_options`."""


def read_lowering(frame: types.FrameType | None) -> Lowering | None:
    """Read what JAX has just lowered; None where its frame is not as we know it."""
    found = frame_near(frame, "_cached_lowering_to_hlo")
    if found is None:
        return None
    code, local = found.f_code, found.f_locals
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    module = getattr(local.get("lowering_result"), "module", None)
    if module is None or not {"platforms", "closed_jaxpr"} <= set(names) or code.co_freevars:
        return None
    # The function itself, without the cache that JAX keeps around it.
    lower = types.FunctionType(code, found.f_globals)
    arguments = {name: local[name] for name in names}
    in_force = tuple(zip(settings.names(), settings.values(), strict=True))
    return Lowering(lower, arguments, module, in_force)


def read_compilation(frame: types.FrameType | None) -> Compilation | None:
    """Read how a program is compiled; None where the frame is not as we know it: `jax.pmap`."""
    found = frame_near(frame, "_cached_compilation")
    if found is None:
        return None
    local = found.f_locals
    try:
        return Compilation(
            local["computation"],
            len(local["da"]),
            tuple(local["allow_prop_to_inputs"]),
            tuple(local["allow_prop_to_outputs"]),
            dict(local["compiler_options_kvs"]),
        )
    except KeyError:
        return None


@dataclass(frozen=True, slots=True)
class _AbsentBackend:
    """Stands in for the backend of an absent platform, where JAX lowers a callback for it.

    Of all lowering rules only those of callbacks ask for the backend of their platform. JAX then
    writes the instructions that such a device runs: on a TPU, transfers to the host and back; on a
    GPU, a call of `xla_ffi_python_gpu_callback`. In these a callback is only its place in a list.
    The list stays here, and is empty on a TPU: there is no device that would look into it.
    """

    platform: str
    here: Any
    """The backend of this machine, for whatever else is asked: how many devices."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.here, name)

    @staticmethod
    def make_python_callback_from_host_send_and_recv(*_arguments: Any) -> None:
        """What a TPU would call; nothing calls it."""


def lower_for(
    lowering: Lowering, platform: str, *, has_callbacks: bool = False, keep_places: bool = False
) -> tuple[bytes, list[tuple[tuple[str, int, str], ...]]]:
    """Lower for another platform, as StableHLO bytecode; for a GPU, also each product's stack.

    Of callbacks the instructions stay, and nothing that they could call. Without `keep_places` the
    module does not say from which lines of the source it comes.

    Raises:
        Exception: whatever JAX says of a program that the platform has no rule for.
    """
    arguments = {**lowering.arguments, "platforms": (platform,)}
    if has_callbacks:
        arguments["backend"] = _AbsentBackend(platform, arguments["backend"])
    no_lines = jax.log_compiles(False)  # noqa: FBT003 (the user should not hear of this one)
    in_force = lowering.settings
    if keep_places or platform == "cuda":
        # A library's frames may be more than the ten that JAX writes: the user's come after them.
        in_force = (*in_force, ("jax_traceback_in_locations_limit", -1))
    with settings.set_as(in_force), no_lines:
        made = lowering.lower(**arguments)
        module = made[0]
        if getattr(made[-1], "uses_dim_vars", False):
            module = _mlir.refine_polymorphic_shapes(module)  # as JAX does before it compiles
        whole = module.operation
        products = product_stacks(whole) if platform == "cuda" else []
        return bytecode_of(whole) if keep_places else _without_places(whole), products


def lowered_bytes(function: Callable[..., Any], arguments: Sequence[Any], platform: str) -> bytes:
    """A function lowered for a platform, without source lines; unused arguments stay."""
    with jax.log_compiles(False):  # noqa: FBT003 (the user should not hear of this one)
        traced = jax.jit(function, keep_unused=True).trace(*arguments)
        lowered = traced.lower(lowering_platforms=(platform,))
    module = lowered.compiler_ir("stablehlo")
    return _without_places(module.operation)


def run_here(executable: Any, inputs: Sequence[Any]) -> list[np.ndarray]:
    """Run what `compile_module` returned, on this machine's first device."""
    device = jax.devices("cpu")[0]
    given = [jax.device_put(each, device) for each in inputs]
    results = executable.execute_sharded(given).disassemble_into_single_device_arrays()
    return [np.asarray(shards[0]) for shards in results]


_PRODUCTS = frozenset({"stablehlo.dot_general", "stablehlo.convolution"})
_FRAME = re.compile(r'"((?:[^"\\]|\\.)*)"\("((?:[^"\\]|\\.)*)":(\d+):')


def products_in(module: Any) -> list[Any]:
    """The operations of a module that are products, in an order that stays the same."""
    return _operations(module, _PRODUCTS)


def product_stacks(module: Any) -> list[tuple[tuple[str, int, str], ...]]:
    """The stack of each product: file, line and function of its frames, the innermost first.

    One in a function of the module has inner frames only: the function's call has the outer ones.
    """
    calls: dict[str, Any] = {}
    for call in _operations(module, frozenset({"func.call"})):
        calls.setdefault(call.attributes["callee"].value, call)
    return [_stack_of(product, calls) for product in products_in(module)]


def _operations(module: Any, names: frozenset[str]) -> list[Any]:
    found: list[Any] = []

    def visit(operation: Any) -> Any:
        if operation.name in names:
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.walk(visit)
    return found


def _stack_of(operation: Any, calls: dict[str, Any]) -> tuple[tuple[str, int, str], ...]:
    found: list[tuple[str, int, str]] = []
    for _ in range(len(calls) + 1):  # an end even if functions called each other in a circle
        for name, file, line in _FRAME.findall(str(operation.location)):
            # Before 0.8 there is one line, behind the operation's name.
            function = "" if "/" in name or "(" in name else name
            found.append((file.replace("\\\\", "\\"), int(line), function))
        while operation is not None and operation.name != "func.func":
            operation = operation.parent
        name = "" if operation is None else operation.attributes["sym_name"].value
        if name not in calls:
            break
        operation = calls[name]
    return tuple(found)


def with_numbered_products(bytecode: bytes) -> bytes:
    """A module whose products are named by their numbers, which compilers then say of them."""
    with _mlir.make_ir_context():
        module = ir.Module.parse(bytecode)
        for number, operation in enumerate(products_in(module.operation)):
            operation.location = ir.Location.name(f"product {number}")
        return bytecode_of(module.operation)


def _without_places(module: Any) -> bytes:
    """A module's bytecode without the lines that it came from; changes the module itself."""
    with module.context:
        PassManager.parse("builtin.module(strip-debuginfo)").run(module)
    return bytecode_of(module)


def bytecode_of(module: Any) -> bytes:
    """The bytecode of a module's operation."""
    written = io.BytesIO()
    module.write_bytecode(written)
    return written.getvalue()


@dataclass(frozen=True, slots=True)
class Measure:
    """A program's hash and size, the same in every process."""

    fingerprint: str
    operations: int


def measure(compilation: Compilation) -> Measure:
    """Hash what XLA is handed, and count its operations; takes a tenth of a millisecond and more.

    Where a program comes from in the source is left out: the same from two lines is the same. What
    XLA is told beside the module belongs to it: over how many devices, with which options.
    """
    # JAX may be lowering another program: the copy must not be put into that one.
    copy = compilation.module.operation.clone(ip=False)
    operations = 0

    def count(operation: Any) -> Any:
        nonlocal operations
        operations += operation.name not in _NO_WORK
        return ir.WalkResult.ADVANCE

    copy.walk(count)
    beside = repr((compilation.devices, sorted(compilation.options.items())))
    handed = beside.encode() + b"\0" + _without_places(copy)
    digest = hashlib.blake2b(handed, digest_size=16)  # a sixth of SHA-256's time for a small one
    return Measure(digest.hexdigest(), operations)


# What holds operations together, and computes nothing.
_NO_WORK = frozenset({"builtin.module", "func.func", "func.return", "stablehlo.return"})


def compile_module(
    written: bytes | str,
    devices: Sequence[Any],
    may_move: tuple[Sequence[bool], Sequence[bool]],
    options: dict[str, Any],
    platform: str,
) -> Any:
    """Compile a module, `written` as bytecode or as text, for devices that need not be there.

    The public way begins with a function, and would lower a second time what has been lowered.

    Returns:
        XLA's executable.
    """
    with _mlir.make_ir_context():
        module = ir.Module.parse(written)
    client = devices[0].client
    how = _compiler.get_compile_options(
        num_replicas=1,
        num_partitions=len(devices),
        device_assignment=np.array(devices, dtype=object).reshape(1, len(devices)),
        env_options_overrides=options,
        backend=client,
    )
    inputs, outputs = may_move
    build = how.executable_build_options
    build.allow_spmd_sharding_propagation_to_parameters = list(inputs)
    build.allow_spmd_sharding_propagation_to_output = list(outputs)
    # As JAX does: a TPU takes so many arguments only as one.
    how.parameter_is_tupled_arguments = platform == "tpu" and len(inputs) > 2000
    together = xla_client.DeviceList(tuple(devices))
    return _compiler.backend_compile_and_load(client, module, together, how, [])


def optimised_text(executable: Any) -> str:
    """The program as its compiler made it, with all constants written out."""
    module = executable.hlo_modules()[0]
    options = _print_options()
    if options is None:
        return str(module.to_string())
    options.print_large_constants = True
    return str(module.to_string(options))


def shardings_of(executable: Any) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """How arguments and results are laid out on devices, as XLA writes it: ``{replicated}``.

    Some releases do not have that in the program's text. None for one device, and where the
    compiler does not say.
    """
    try:
        arguments = executable.get_parameter_shardings()
        results = executable.get_output_shardings()
        if arguments is None and results is None:
            return None
        read = xla_client.HloSharding.from_proto
        # None also where there are no arguments, or no results.
        return (
            tuple(str(read(each)) for each in arguments or ()),
            tuple(str(read(each)) for each in results or ()),
        )
    except Exception:  # noqa: BLE001 (whatever it is, it is not known)
        return None


def _print_options() -> Any:
    """JAX's `HloPrintOptions`, which moved with 0.8; without, large constants are left out."""
    for name in ("jaxlib._hlo", "jaxlib._jax", "jaxlib.xla_extension"):
        with contextlib.suppress(ImportError, AttributeError):
            return importlib.import_module(name).HloPrintOptions()
    return None
