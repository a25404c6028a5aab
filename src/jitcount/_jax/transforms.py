"""Which transformation of a function is compiled, from the frames of the rules that apply it.

JAX transforms a jitted function by a rule for its primitive, which calls what it has made of it.
No public interface tells which one it was; the names of the rules do. A rule that a release has
renamed is not found: then its programs are compared with those of the function itself, and told
apart by what is compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._jax.origin import JAX_DIRECTORIES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

BACKWARD_PASS = "backward pass"  # noqa: S105 (no password)

# A function of JAX's, and the transformation that it stands for. `jax.checkpoint` runs a jaxpr, and
# so does the function that `jax.linearize` returns: the jits in it are called without wrappers.
TRANSFORMS = {
    "_pjit_batcher": "vmap",
    "_pjit_jvp": "grad",
    "_pjit_linearize": "grad",
    "_pjit_partial_eval": "grad",
    "remat_partial_eval": "grad",
    "_lift_linearized": "linearize",
    "_pjit_transpose": BACKWARD_PASS,
    "_pjit_transpose_fancy": BACKWARD_PASS,
    "backward_pass": BACKWARD_PASS,
    "backward_pass3": BACKWARD_PASS,
    "eval_jaxpr": "eval_jaxpr",
}


def transform_in(found: Mapping[str, object]) -> str:
    """The innermost transformation; that a jaxpr is run is told where there is none."""
    named = [TRANSFORMS[name] for name in found if name in TRANSFORMS]
    return next((name for name in named if name != "eval_jaxpr"), named[0] if named else "")


def transformed_over(found: Mapping[str, FrameType]) -> tuple[int | None, ...]:
    """How the arguments are mapped or differentiated, from the rule that does it.

    Without these names in its frame, two ways of transforming are told apart by what is compiled.
    """
    for name, frame in found.items():
        if name == "_pjit_batcher":
            axes = frame.f_locals.get("dims_in", ())
            return tuple(axis if isinstance(axis, int) else None for axis in axes)
        if name in {"_pjit_jvp", "_pjit_linearize"}:
            local = frame.f_locals
            by = local.get("nzs", local.get("is_nz_tangents_in", ()))
            return tuple(0 if is_by else None for is_by in by)
    return ()


def is_in_backward_pass(frame: FrameType | None) -> bool:
    """Whether a backward pass calls what stands in `frame`, with no code of the user's between."""
    while frame is not None and frame.f_code.co_filename.startswith(JAX_DIRECTORIES):
        if TRANSFORMS.get(frame.f_code.co_name) == BACKWARD_PASS:
            return True
        frame = frame.f_back
    return False
