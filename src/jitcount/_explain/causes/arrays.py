"""An array changed: its shape, its dtype, or where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeAlias

from msgspec.structs import replace

from jitcount._explain.causes.cause import Cause, Kind, Precedence, TextCause, in_a_list
from jitcount._observe.array_type import ArrayType
from jitcount._observe.call_site import argument_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


# Zeros change a mean: the function has to know what is padding.
_REMEDY = "with jitcount.bucketed, and mask the padding"


class Shape(Cause, frozen=True, tag="shape"):
    """An array has another shape, or another number of axes."""

    kind: ClassVar = Kind.SHAPE
    precedence: ClassVar = Precedence.ARRAY
    holds_user_values: ClassVar = False
    old: ArrayType
    new: ArrayType

    @property
    def before(self) -> str:
        """Dtype and shape in the earlier program."""
        return str(self.old)

    @property
    def after(self) -> str:
        """Dtype and shape now."""
        return str(self.new)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that have another length; none where their number changed."""
        old, new = self.old.shape, self.new.shape
        if len(old) != len(new):
            return ()
        return tuple(axis for axis, (o, n) in enumerate(zip(old, new, strict=True)) if o != n)

    @property
    def advice(self) -> str:
        """To pad the array to a few sizes, without what zeros would change, or to keep its rank."""
        if not self.axes:
            return f"pass {self.where} with rank {len(self.old.shape)} in every call"
        named = ", ".join(map(str, self.axes))
        if len(self.axes) == 1:
            return f"pad axis {named} of {self.where} to a few lengths {_REMEDY}"
        return f"pad axes {named} of {self.where} to a few shapes {_REMEDY}"

    @property
    def changed(self) -> tuple[str, str]:
        """The axis that changed and its lengths; the whole shapes if it is not exactly one."""
        if len(self.axes) != 1:
            if self.old.dtype != self.new.dtype:  # which is a cause of its own
                shapes = (str(each).removeprefix(each.dtype) for each in (self.old, self.new))
                return f"shape of {self.where}", " → ".join(shapes)
            return self.where, f"{self.before} → {self.after}"
        (axis,) = self.axes
        return f"axis {axis} of {self.where}", f"{self.old.shape[axis]} → {self.new.shape[axis]}"

    def __str__(self) -> str:
        return f"{self._in_words()}: {self.before} became {self.after}"

    def _in_words(self) -> str:
        old, new = self.old.shape, self.new.shape
        if not self.axes:
            return f"{self.where} went from rank {len(old)} to rank {len(new)}"
        if len(self.axes) > 1:
            return f"axes {', '.join(map(str, self.axes))} of {self.where} changed"
        (axis,) = self.axes
        return f"axis {axis} of {self.where} went from {old[axis]} to {new[axis]}"


class Dtype(TextCause, frozen=True, tag="dtype"):
    """An array has another dtype."""

    kind: ClassVar = Kind.DTYPE
    precedence: ClassVar = Precedence.ARRAY
    holds_user_values: ClassVar = False
    subject: ClassVar = "{self.where}"
    is_scalar: bool = False

    @property
    def advice(self) -> str:
        """To cast it."""
        return self.advice_at((self.where,))

    def advice_at(self, places: Sequence[str]) -> str:
        """To cast each of them; what may be a Python number has no ``astype``."""
        dtype = _widest((self.before, self.after))
        if self.is_scalar:
            passed = in_a_list(tuple(f"jnp.{dtype}({place})" for place in places), ", ")
            return f"give it that dtype in every call: {passed}"
        cast = in_a_list(tuple(f"{place}.astype('{dtype}')" for place in places), ", ")
        return f"cast {'it' if len(places) == 1 else 'them'} before the call: {cast}"

    def among(self, others: Iterable[Dtype]) -> Dtype:
        """The same with a dtype before that holds all of several changes, for one advice."""
        seen = (dtype for each in others for dtype in (each.before, each.after))
        return replace(self, before=_widest((self.before, self.after, *seen)))


def _widest(dtypes: Iterable[str]) -> str:
    """A dtype that holds what all of some dtypes hold; the first where JAX knows none.

    JAX is imported where it is needed, as causes are read from files without it.
    """
    widest, *others = dict.fromkeys(dtypes)
    if not others:
        return widest
    import jax.numpy as jnp  # noqa: PLC0415

    try:
        for dtype in others:
            widest = str(jnp.promote_types(widest, dtype))
    except (TypeError, ValueError):  # a key's, for example
        return widest
    return widest


def _is_deep(place: str) -> bool:
    """Whether a place is in an object, or below a dict or tuple: nobody passes it by itself."""
    return "." in place or place.count("[") > 1


class WeakType(Cause, frozen=True, tag="weak-type"):
    """A Python scalar in the place of an array, or the other way round."""

    kind: ClassVar = Kind.WEAK_TYPE
    precedence: ClassVar = Precedence.ARRAY
    holds_user_values: ClassVar = False
    subject: ClassVar = "{self.where}"
    dtype: str
    is_weak: bool
    """Whether it is weakly typed now; before it was the other way round."""

    is_scalar: bool

    @property
    def before(self) -> str:
        """The dtype in the earlier program, perhaps weak."""
        return self.dtype if self.is_weak else f"weak {self.dtype}"

    @property
    def after(self) -> str:
        """The dtype now, perhaps weak."""
        return f"weak {self.dtype}" if self.is_weak else self.dtype

    @property
    def advice(self) -> str:
        """To pass an array of that dtype."""
        return self.advice_at((self.where,))

    def advice_at(self, places: Sequence[str]) -> str:
        """To pass arrays of that dtype; all of an argument where it is deep in one."""
        if all(map(_is_deep, places)):
            arguments = in_a_list(tuple(dict.fromkeys(map(argument_in, places))), ", ")
            strong = "lambda leaf: jnp.asarray(leaf, jnp.result_type(leaf))"
            return (
                f"make {arguments} strongly typed before the first call: "
                f"jax.tree.map({strong}, {arguments})"
            )
        if self.is_scalar:
            return f"pass jnp.{self.dtype}(...) for {in_a_list(places, ', ')} in every call"
        strong = in_a_list(tuple(f"{place}.astype('{self.dtype}')" for place in places), ", ")
        it = "it" if len(places) == 1 else "them"
        return f"make {it} strongly typed before the first call: {strong}"

    def __str__(self) -> str:
        weakly = f"weakly typed {self.dtype} (as Python scalars and what is made of them)"
        old, new = (self.dtype, weakly) if self.is_weak else (weakly, self.dtype)
        return f"{self.where} went from {old} to {new}"


NO_DEVICE = "no device in particular"


class OnDevice(TextCause, frozen=True, tag="device"):
    """An array is bound to a device, or to another one."""

    kind: ClassVar = Kind.DEVICE
    precedence: ClassVar = Precedence.ARRAY
    holds_user_values: ClassVar = False
    subject: ClassVar = "{self.where}"

    @property
    def advice(self) -> str:
        """To put the array on one device, once."""
        device = self.after if self.before == NO_DEVICE else self.before
        return f"put {self.where} on {device} once, with jax.device_put, before the first call"


class Sharding(TextCause, frozen=True, tag="sharding"):
    """An array is laid out another way over several devices."""

    kind: ClassVar = Kind.SHARDING
    precedence: ClassVar = Precedence.ARRAY
    holds_user_values: ClassVar = False
    remedy: ClassVar = (
        "set the sharding of {self.where} once, with jax.device_put, before the first call"
    )

    def __str__(self) -> str:
        old, new = (
            f"on {text}" if text == NO_DEVICE else f"sharded as {text}"
            for text in (self.before, self.after)
        )
        if NO_DEVICE not in {self.before, self.after}:
            old = self.before
        return f"{self.where} was {new} instead of {old}"


ArrayCause: TypeAlias = Shape | Dtype | WeakType | OnDevice | Sharding
