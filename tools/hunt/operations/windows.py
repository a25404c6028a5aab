"""Windows: `reduce_window`, and convolutions with padding, strides, dilations and groups."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tools.hunt.grammar import MOST_ELEMENTS, MOST_PRODUCTS, Builder, proposal
from tools.hunt.operations.elementwise import operation
from tools.hunt.operations.shapes import padded
from tools.hunt.values import EXACT_IN_PRODUCTS, FLOATS, Spec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tools.hunt.program import Step

_REDUCERS: dict[str, Callable[..., Any]] = {"add": np.sum, "max": np.max, "min": np.min}


def _windows(x: Any, step: Step, sizes: Sequence[int], fill: int, first_axis: int = 0) -> Any:
    """All windows of an array, as further axes at its end."""
    axes = range(first_axis, x.ndim)
    config = [(0, 0, 0)] * first_axis
    pairs = zip(step["padding"], step["base_dilation"], strict=True)
    # Dilated first, then padded or cropped.
    config += [(low, high, dilation - 1) for (low, high), dilation in pairs]
    wide = padded(x, tuple(config), fill)
    dilations = step["window_dilation"]
    spans = [(size - 1) * dilation + 1 for size, dilation in zip(sizes, dilations, strict=True)]
    views = sliding_window_view(wide, spans, axis=tuple(axes))
    strides = [slice(None)] * first_axis + [slice(None, None, one) for one in step["strides"]]
    inner = [slice(None, None, one) for one in dilations]
    return views[(*strides, *inner)]


def _reduce_window(step: Step, x: Any) -> Any:
    windows = _windows(x, step, step["window"], step["initial"])
    reduced = _REDUCERS[step["reducer"]](windows, axis=tuple(range(x.ndim, 2 * x.ndim)))
    combine = {"add": np.add, "max": np.maximum, "min": np.minimum}[step["reducer"]]
    return reduced if step["monoid"] else combine(reduced, step["initial"])


def _reduce_window_source(step: Step, x: str) -> str:
    initial = str(step["initial"])
    if step["monoid"]:
        lowest = "-jnp.inf" if step.spec.is_float else f"jnp.iinfo({x}.dtype).min"
        highest = "jnp.inf" if step.spec.is_float else f"jnp.iinfo({x}.dtype).max"
        initial = {"add": "0", "max": lowest, "min": highest}[step["reducer"]]
    return (
        f"lax.reduce_window({x}, jnp.asarray({initial}, {x}.dtype), lax.{step['reducer']}, "
        f"{step['window']}, {step['strides']}, {step['padding']}, {step['base_dilation']}, "
        f"{step['window_dilation']})"
    )


operation("reduce_window", _reduce_window, _reduce_window_source)


def _geometry(
    build: Builder, extents: Sequence[int], window: Sequence[int], *, plain: bool = False
) -> tuple[dict[str, Any], tuple[int, ...]] | None:
    """Padding, strides and dilations for windows, and the shape that comes of them."""
    padding, strides, base, inner, shape = [], [], [], [], []
    for extent, size in zip(extents, window, strict=True):
        easy = plain or not build.sometimes(2)
        low, high = (0, 0) if easy else (build.integer(-2, 3), build.integer(-2, 3))
        stride = build.choose((1, 1, 2, 3))
        dilation = 1 if easy else build.choose((1, 1, 2))
        between = 1 if easy else build.choose((1, 1, 2))
        wide = (extent - 1) * dilation + 1
        # What is cropped must be there.
        if max(0, -low) + max(0, -high) >= extent:
            low = high = 0
        span = (size - 1) * between + 1
        places = (wide + low + high - span) // stride + 1
        if wide + low + high < span or places < 1:
            return None
        padding.append((low, high))
        strides.append(stride)
        base.append(dilation)
        inner.append(between)
        shape.append(places)
    parameters = {
        "padding": tuple(padding),
        "strides": tuple(strides),
        "base_dilation": tuple(base),
        "window_dilation": tuple(inner),
    }
    return parameters, tuple(shape)


@proposal(3)
def _window(build: Builder) -> object:
    value = build.pick(lambda spec: 0 < spec.rank <= 5 and spec.dtype != "bool")
    if value is None:
        return None
    spec = build.spec(value)
    window = tuple(
        1 if build.sometimes(2) else build.integer(1, min(4, extent)) for extent in spec.shape
    )
    reducer = build.choose(list(_REDUCERS))
    # JAX knows the reduction by its neutral element. In a window with nothing but padding an
    # extremum would be that element, which may be infinite.
    monoid = reducer == "add" or build.sometimes(2)
    found = _geometry(build, spec.shape, window, plain=monoid and reducer != "add")
    if found is None or math.prod(found[1]) * math.prod(window) > 4 * MOST_ELEMENTS:
        return None
    if math.prod(found[1]) > MOST_ELEMENTS:
        return None
    parameters, shape = found
    count = math.prod(window)
    if reducer == "add":
        value = build.fit(value, FLOATS.get(spec.dtype, 1 << 62) // count)
        spec = build.spec(value).with_(size=build.spec(value).size * count)
    # Padding is the initial value.
    made = replace(spec, shape=shape)
    return build.add(
        "reduce_window",
        [value],
        made,
        reducer=reducer,
        window=window,
        monoid=monoid,
        initial=0,
        **parameters,
    )


def _convolve(step: Step, x: Any, kernel: Any) -> Any:
    """Batch and features first in both; the features are in groups."""
    groups = step["groups"]
    windows = _windows(x, step, kernel.shape[2:], 0, first_axis=2)
    space = x.ndim - 2
    windows = windows.reshape(windows.shape[0], groups, -1, *windows.shape[2:])
    kernel = kernel.reshape(groups, -1, *kernel.shape[1:])
    places, inside = "pqr"[:space], "uvw"[:space]
    found = np.einsum(
        f"ngi{places}{inside},goi{inside}->ngo{places}",
        windows.astype(float),
        kernel.astype(float),
        optimize=True,
    )
    return np.rint(found.reshape(found.shape[0], -1, *found.shape[3:])).astype(np.int64)


operation(
    "convolution",
    _convolve,
    lambda step, x, kernel: (
        f"lax.conv_general_dilated({x}, {kernel}, {step['strides']}, {step['padding']}, "
        f"lhs_dilation={step['base_dilation']}, rhs_dilation={step['window_dilation']}, "
        f"feature_group_count={step['groups']})"
    ),
)


@proposal(2)
def _convolution(build: Builder) -> object:
    value = build.pick(lambda spec: spec.rank in {3, 4} and spec.is_float)
    if value is None:
        value = build.fresh(build.shape(build.choose((3, 4)), 5000), "float32")
    spec = build.spec(value)
    batch, features, *extents = spec.shape
    if features > 64:
        return None
    window = tuple(build.integer(1, min(3, extent)) for extent in extents)
    groups = features if build.sometimes(4) else 1
    outputs = groups * build.choose((1, 2, 3, 8, 17))
    found = _geometry(build, extents, window)
    if found is None:
        return None
    parameters, shape = found
    result = (batch, outputs, *shape)
    depth = features // groups * math.prod(window)
    if math.prod(result) > MOST_ELEMENTS or math.prod(result) * depth > MOST_PRODUCTS // 4:
        return None
    if math.prod(shape) * batch * features * math.prod(window) > 20 * MOST_ELEMENTS:
        return None
    limit = min(EXACT_IN_PRODUCTS, math.isqrt(FLOATS[spec.dtype] // depth))
    if limit < 1:
        return None
    kernel = build.fit(build.fresh((outputs, features // groups, *window), spec.dtype), limit)
    value = build.fit(value, limit)
    one, other = build.spec(value), build.spec(kernel)
    size = one.size * other.size * depth
    made = Spec(spec.dtype, result, size, one.negative or other.negative)
    return build.add("convolution", [value, kernel], made, groups=groups, **parameters)
