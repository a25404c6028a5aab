"""What a profile needs of JAX: the program at each step, from the frames of what makes it.

No public interface hands out the jaxpr that is lowered, nor the executable that was made. Where a
release renames a frame or a variable, that part of a profile is missing, and it says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jitcount._jax.frames import frame_near

if TYPE_CHECKING:
    from types import FrameType


def lowered_jaxpr(frame: FrameType | None) -> Any:
    """The closed jaxpr that has just been lowered; None where its frame is not as we know it."""
    found = frame_near(frame, "_cached_lowering_to_hlo")
    return None if found is None else found.f_locals.get("closed_jaxpr")
