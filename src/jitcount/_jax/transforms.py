"""Which transformations of a function are compiled, from the frames of the rules that apply them.

JAX transforms a jitted function by a rule for its primitive, which calls what it has made of it.
No public interface tells which one it was; the names of the rules do. A rule that a release has
renamed is not found: then its programs are compared with those of the function itself, and told
apart by what is compiled.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from jitcount._jax.origin import JAX_DIRECTORIES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

BACKWARD_PASS = "backward pass"  # noqa: S105 (no password)
VMAP = "vmap"
JVP = "jvp"
GRAD = "grad"
LINEARIZE = "linearize"

PARTIAL_EVALUATION = "partial evaluation"
"""What is known of a function's arguments is computed first: as a part of `jax.grad`, or by a
library (flax' `nn.scan`), where nothing takes a gradient."""

EVAL_JAXPR = "eval_jaxpr"

# A function of JAX's, and the transformation that it stands for. `jax.checkpoint` runs a jaxpr, and
# so does the function that `jax.linearize` returns: the jits in it are called without wrappers.
TRANSFORMS = {
    "_pjit_batcher": VMAP,
    "_pjit_jvp": JVP,
    "_pjit_linearize": GRAD,
    "_pjit_partial_eval": PARTIAL_EVALUATION,
    "remat_partial_eval": PARTIAL_EVALUATION,
    "_lift_linearized": "what linearize returned",
    "_pjit_transpose": BACKWARD_PASS,
    "_pjit_transpose_fancy": BACKWARD_PASS,
    "backward_pass": BACKWARD_PASS,
    "backward_pass3": BACKWARD_PASS,
    "eval_jaxpr": EVAL_JAXPR,
}

_AUTODIFF = os.path.join("interpreters", "ad.py")  # noqa: PTH118 (the end of a path)


class Transformation(msgspec.Struct, frozen=True):
    """One transformation of a function."""

    name: str

    over: tuple[int | None, ...] = ()
    """For each array that the function had before, the axis that is mapped, or 0 where it is
    differentiated by, or is known; else None. Empty where that is not to be seen."""

    axis_name: str = ""
    """How the mapped axis is called, as it is written; empty without a name."""

    size: int | None = None
    """The length of the mapped axis."""


def transforms_in(frames: Sequence[FrameType]) -> tuple[Transformation, ...]:
    """The transformations of what is compiled, the outermost first.

    That a jaxpr is run is told where there is nothing else.

    Args:
        frames: of the functions in `TRANSFORMS`, the innermost call first. That is the rule of the
            outermost transformation: the one nearest to the user's function is applied first.
    """
    found: list[Transformation] = []
    for frame in frames:
        one = _transformation(frame)
        if found and one.name == BACKWARD_PASS == found[-1].name:
            continue  # the rule of a jit, in the loop over a jaxpr
        if found and one.name == JVP and found[-1].name == PARTIAL_EVALUATION:
            found.pop()  # how JAX linearises without a rule for it
            one = msgspec.structs.replace(one, name=GRAD)
        found.append(one)
    named = [one for one in found if one.name != EVAL_JAXPR]
    return tuple(named or found[:1])


def _transformation(frame: FrameType) -> Transformation:
    """The transformation that a rule stands for, with what the rule's frame says of it."""
    rule = frame.f_code.co_name
    name = TRANSFORMS[rule]
    local = frame.f_locals
    if name == VMAP:
        axes, data = local.get("dims_in", ()), local.get("axis_data")
        axis_name, size = getattr(data, "name", None), getattr(data, "size", None)
        return Transformation(
            name,
            tuple(axis if isinstance(axis, int) else None for axis in axes),
            # Without a name, it is an object of JAX's own.
            "" if axis_name is None or type(axis_name) is object else repr(axis_name),
            size if isinstance(size, int) else None,
        )
    if rule in {"_pjit_jvp", "_pjit_linearize"}:
        by = local.get("nzs", local.get("is_nz_tangents_in", ()))
        if local.get("is_vjp", True) is False:
            name = LINEARIZE
        return Transformation(name, tuple(0 if is_by else None for is_by in by))
    if name == PARTIAL_EVALUATION:
        if _is_of_autodiff(frame):
            return Transformation(GRAD)
        return Transformation(name, tuple(0 if known else None for known in _known(local)))
    return Transformation(name)


def _known(local: dict[str, Any]) -> Sequence[bool]:
    known = local.get("known_ins", ())
    return known if isinstance(known, list | tuple) else ()


def _is_of_autodiff(frame: FrameType) -> bool:
    """Whether a gradient needs a partial evaluation: then JAX's autodiff has begun it."""
    trace = frame.f_locals.get("trace")
    caller = frame.f_back
    while trace is not None and caller is not None:
        is_autodiff = caller.f_code.co_filename.endswith(_AUTODIFF)
        if is_autodiff and any(local is trace for local in caller.f_locals.values()):
            return True
        caller = caller.f_back
    return False


def is_in_backward_pass(frame: FrameType | None) -> bool:
    """Whether a backward pass calls what stands in `frame`, with no code of the user's between."""
    while frame is not None and frame.f_code.co_filename.startswith(JAX_DIRECTORIES):
        if TRANSFORMS.get(frame.f_code.co_name) == BACKWARD_PASS:
            return True
        frame = frame.f_back
    return False
