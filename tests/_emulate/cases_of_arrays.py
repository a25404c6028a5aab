"""The same for operations that move elements, look them up, or reduce them."""

from __future__ import annotations

import numpy as np

from tests._emulate.cases import Case, module, parameters, simple

_A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
_M = np.arange(12, dtype=np.float32).reshape(3, 4)
_V = np.array([3, -1, 2, 2, 7, 0], np.float32)
_I = np.int32

ADD = """add (x: f32[], y: f32[]) -> f32[]
%x = f32[] parameter(0)
%y = f32[] parameter(1)
ROOT %z = f32[] add(%x, %y)"""
GREATER = ADD.replace("add (", "ge (").replace("ROOT %z = f32[] add(%x, %y)", "") + (
    "ROOT %z = pred[] compare(%x, %y), direction=GE"
)
LESS = GREATER.replace("ge (", "lt (").replace("GE", "LT")


def moving() -> list[Case]:
    """Operations that move elements, or make them."""
    eight = np.arange(8, dtype=np.uint8)
    return [
        _given(
            "constant",
            "ROOT %c = f32[2,2] constant({ { 1, -2.5 }, { inf, nan } })",
            np.array([[1, -2.5], [np.inf, np.nan]], np.float32),
        ),
        _given(
            "constant of three axes",
            "ROOT %c = s32[2,1,2] constant({ { /*i0=0*/ { 1, 2 } }, { /*i0=1*/ { 3, 4 } } })",
            np.array([[[1, 2]], [[3, 4]]], _I),
        ),
        _given("constant pred", "ROOT %c = pred[2] constant({1, 0})", np.array([True, False])),
        _given(
            "constant u64",
            "ROOT %c = u64[] constant(18446744073709551615)",
            np.array(2**64 - 1, np.uint64),
        ),
        _given(
            "constant complex",
            "ROOT %c = c64[2] constant({(1, 2), (-0.5, inf)})",
            np.array([1 + 2j, complex(-0.5, np.inf)], np.complex64),
        ),
        _given("constant empty", "ROOT %c = f32[0,2] constant({})", np.zeros((0, 2), np.float32)),
        Case(
            "tuple constant",
            module(
                "%c = (s32[], (f32[2], pred[])) constant((7, ({1, 2}, true)))\n"
                "%d = (f32[2], pred[]) get-tuple-element(%c), index=1\n"
                "ROOT %e = f32[2] get-tuple-element(%d), index=0"
            ),
            (),
            (np.array([1, 2], np.float32),),
        ),
        _given(
            "iota",
            "ROOT %c = s32[2,3] iota(), iota_dimension=1",
            np.array([[0, 1, 2], [0, 1, 2]], _I),
        ),
        simple("bitcast", (_M,), _M.view(np.int32)),
        simple("bitcast-convert", (eight.reshape(2, 4),), eight.view(np.uint32)),
        simple("reshape", (_A,), _A.reshape(6, 4)),
        simple("transpose", (_A,), _A.transpose(2, 0, 1), "dimensions={2,0,1}"),
        simple("reverse", (_A,), _A[::-1, :, ::-1], "dimensions={0,2}"),
        simple("broadcast", (_V,), np.broadcast_to(_V[:, None], (6, 2)), "dimensions={0}"),
        simple("concatenate", (_M, _M[:1], _M), np.concatenate([_M, _M[:1], _M]), "dimensions={0}"),
        simple("slice", (_M,), _M[1:3, 0:4:2], "slice={[1:3], [0:4:2]}"),
        simple("pad", (_V, np.float32(9)), _padded(), "padding=1_-1_2"),
        simple("dynamic-slice", (_M, _I(1), _I(2)), _M[1:3, 2:4], "dynamic_slice_sizes={2,2}"),
        simple(
            "dynamic-slice",
            (_M, np.int64(9), _I(-9)),
            _M[2:3, 0:4],
            "dynamic_slice_sizes={1,4}",
            name="dynamic-slice beyond the edge",
        ),
        simple("dynamic-update-slice", (_V, _V[:2], _I(3)), np.array([3, -1, 2, 3, -1, 0], "f4")),
        simple(
            "gather",
            (_M, np.array([[2], [0]], _I)),
            _M[[2, 0]],
            "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
            "slice_sizes={1,4}",
        ),
        simple(
            "gather",
            (_M, np.array([[2], [0], [1]], _I)),
            np.take_along_axis(_M, np.array([[2], [0], [1]]), 1),
            "offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, "
            "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, "
            "slice_sizes={1,1}",
            name="gather with batches",
        ),
        simple(
            "scatter",
            (_M, np.array([[2], [0], [2]], _I), np.ones((3, 4), np.float32)),
            _M + np.array([[1], [0], [2]], np.float32),
            "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
            "index_vector_dim=1, to_apply=%add",
            computations=(ADD,),
        ),
        Case(
            "tuple and get-tuple-element",
            module(
                f"{parameters(_M, _V)}\n"
                "%t = (f32[3,4], f32[6]) tuple(%p0, %p1)\n"
                "%g = f32[6] get-tuple-element(%t), index=1\n"
                "%after = token[] after-all()\n"
                "ROOT %u = (f32[6], (f32[3,4], f32[6])) tuple(%g, %t)"
            ),
            (_M, _V),
            (_V, _M, _V),
        ),
    ]


def _given(name: str, line: str, expected: np.ndarray) -> Case:
    return Case(name, module(line), (), (expected,))


def _padded() -> np.ndarray:
    spread = np.full(1 + 6 + 5 * 2, 9, np.float32)
    spread[1::3] = _V
    return spread[:-1]


def reducing() -> list[Case]:
    """Operations that make one element of many."""
    zero = np.float32(0)
    windows = np.array([_V[i : i + 3].sum() for i in range(4)], np.float32)
    largest = np.array([7, 3], np.float32)
    indices = np.arange(6, dtype=np.int32)
    order = np.argsort(_V, kind="stable")
    bf16 = np.full(4096, 1.0, np.float32)
    return [
        simple(
            "reduce",
            (_A, zero),
            _A.sum((0, 2)),
            "dimensions={0,2}, to_apply=%add",
            computations=(ADD,),
        ),
        # 4,096 ones: in bfloat16 the sum would stand still at 256.
        Case(
            "reduce bf16",
            module(
                f"{parameters(bf16)}\n%n = bf16[4096]{{0}} convert(%p0)\n%z = bf16[] constant(0)\n"
                "%s = bf16[] reduce(%n, %z), dimensions={0}, to_apply=%add\n"
                "ROOT %w = f32[] convert(%s)",
                ADD.replace("f32", "bf16"),
            ),
            (bf16,),
            (np.float32(4096),),
        ),
        Case(
            "reduce several",
            module(
                f"{parameters(_V, indices)}\n%z = f32[] constant(-inf)\n%m = s32[] constant(-1)\n"
                "ROOT %r = (f32[], s32[]) reduce(%p0, %p1, %z, %m), dimensions={0}, "
                "to_apply=%larger",
                _LARGER,
            ),
            (_V, indices),
            (np.float32(7), np.int32(4)),
        ),
        simple(
            "reduce-window",
            (_V, zero),
            windows,
            "window={size=3}, to_apply=%add",
            computations=(ADD,),
        ),
        simple(
            "reduce-window",
            (_V, zero),
            np.array([3, 1, 9, 0], np.float32),
            "window={size=2 stride=2 pad=1_1}, to_apply=%add",
            computations=(ADD,),
            name="reduce-window padded",
        ),
        simple(
            "select-and-scatter",
            (_V, np.array([1, 5, 2], np.float32), zero),
            np.array([1, 0, 5, 0, 2, 0], np.float32),
            "window={size=2 stride=2}, select=%ge, scatter=%add",
            computations=(GREATER, ADD),
        ),
        simple(
            "sort",
            (_V,),
            np.sort(_V),
            "dimensions={0}, is_stable=true, to_apply=%lt",
            computations=(LESS,),
        ),
        Case(
            "sort two",
            module(
                f"{parameters(_V, indices)}\nROOT %s = (f32[6], s32[6]) sort(%p0, %p1), "
                "dimensions={0}, to_apply=%by_first",
                _BY_FIRST,
            ),
            (_V, indices),
            (_V[order], indices[order]),
        ),
        Case(
            "topk",
            module(f"{parameters(_V)}\nROOT %t = (f32[2], s32[2]) topk(%p0), k=2, largest=true"),
            (_V,),
            (largest, np.array([4, 0], np.int32)),
        ),
    ]


_LARGER = """larger (a: f32[], i: s32[], b: f32[], j: s32[]) -> (f32[], s32[])
%a = f32[] parameter(0)
%i = s32[] parameter(1)
%b = f32[] parameter(2)
%j = s32[] parameter(3)
%ge = pred[] compare(%a, %b), direction=GE
%v = f32[] select(%ge, %a, %b)
%k = s32[] select(%ge, %i, %j)
ROOT %t = (f32[], s32[]) tuple(%v, %k)"""

_BY_FIRST = """by_first (a: f32[], b: f32[], i: s32[], j: s32[]) -> pred[]
%a = f32[] parameter(0)
%b = f32[] parameter(1)
%i = s32[] parameter(2)
%j = s32[] parameter(3)
ROOT %lt = pred[] compare(%a, %b), direction=LT"""
