"""The causes of a compile: for each a class of facts, which says itself in words at the end.

What changed is kept as it is (shapes, names, texts), so that a log, a ledger and a table can count
and sort it. The sentence and the advice are made of these facts when they are asked for.
"""

from __future__ import annotations

from typing import TypeAlias

from jitcount._explain.causes.arguments import (
    CallConvention,
    NoEquality,
    Parameter,
    StaticField,
    StaticFunction,
    StaticObject,
    StaticValue,
)
from jitcount._explain.causes.arrays import Dtype, OnDevice, Shape, Sharding, WeakType
from jitcount._explain.causes.cause import Cause, Kind
from jitcount._explain.causes.functions import (
    CachesCleared,
    FirstCall,
    JitOption,
    NewFunction,
    Setting,
    Transform,
    Unknown,
)
from jitcount._explain.causes.structure import Container, Keys, Length, Optional, StaticPart

AnyCause: TypeAlias = (
    FirstCall
    | Shape
    | Dtype
    | WeakType
    | StaticValue
    | NoEquality
    | StaticFunction
    | StaticField
    | StaticObject
    | Parameter
    | CallConvention
    | Keys
    | Length
    | StaticPart
    | Optional
    | Container
    | NewFunction
    | Transform
    | OnDevice
    | Sharding
    | Setting
    | JitOption
    | CachesCleared
    | Unknown
)
"""What a ledger may hold."""

__all__ = ["AnyCause", "Cause", "Kind"]
