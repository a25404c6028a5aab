"""The same for computations inside computations, what runs beside, devices, and linear algebra."""

from __future__ import annotations

import numpy as np

from tests._emulate.cases import Case, module, parameters, simple
from tests._emulate.cases_of_arrays import ADD, LESS

_M = np.arange(12, dtype=np.float32).reshape(3, 4)
_V = np.array([3, -1, 2, 2, 7, 0], np.float32)
_SQUARE = """square (x: f32[6]) -> f32[6]
%x = f32[6]{0} parameter(0)
ROOT %y = f32[6]{0} multiply(%x, %x)"""


def control() -> list[Case]:
    """Fusions, calls, loops and branches."""
    branches = (
        _SQUARE,
        "same (x: f32[6]) -> f32[6]\nROOT %x = f32[6]{0} parameter(0)",
        _SQUARE.replace("square (", "twice (").replace("multiply", "add"),
    )
    by_number = "conditional(%p0, %p1, %p1, %p1), branch_computations={%square, %same, %twice}"
    by_truth = "conditional(%p0, %p1, %p2), true_computation=%square, false_computation=%twice"
    yes, other = np.bool_(1), _V + 1
    return [
        simple("fusion", (_V,), _V**2, "kind=kLoop, calls=%square", computations=(_SQUARE,)),
        simple("call", (_V,), _V**2, "to_apply=%square", computations=(_SQUARE,)),
        simple("map", (_V, _V), _V + _V, "dimensions={0}, to_apply=%add", computations=(ADD,)),
        Case(
            "while",
            module(
                f"{parameters(np.int32(0), _V)}\n"
                "%inner = (f32[6]) tuple(%p1)\n"
                "%t = (s32[], (f32[6])) tuple(%p0, %inner)\n"
                "ROOT %w = (s32[], (f32[6])) while(%t), condition=%go_on, body=%step",
                _GO_ON,
                _STEP,
            ),
            (np.int32(0), _V),
            (np.int32(3), _V * 8),
        ),
        *(
            _entry(f"conditional {number}", by_number, (np.int32(number), _V), wanted, branches)
            for number, wanted in ((0, _V**2), (1, _V), (2, 2 * _V), (-1, 2 * _V), (9, 2 * _V))
        ),
        _entry("conditional true", by_truth, (yes, _V, other), _V**2, branches),
        _entry("conditional false", by_truth, (~yes, _V, other), 2 * other, branches),
    ]


def _entry(
    name: str,
    call: str,
    arguments: tuple[np.ndarray | np.generic, ...],
    expected: np.ndarray,
    computations: tuple[str, ...],
) -> Case:
    given = tuple(np.asarray(each) for each in arguments)
    text = module(f"{parameters(*given)}\nROOT %it = f32[6]{{0}} {call}", *computations)
    return Case(name, text, given, (expected,))


_GO_ON = """go_on (t: (s32[], (f32[6]))) -> pred[]
%t = (s32[], (f32[6])) parameter(0)
%i = s32[] get-tuple-element(%t), index=0
%n = s32[] constant(3)
ROOT %lt = pred[] compare(%i, %n), direction=LT"""

_STEP = """step (t: (s32[], (f32[6]))) -> (s32[], (f32[6]))
%t = (s32[], (f32[6])) parameter(0)
%i = s32[] get-tuple-element(%t), index=0
%u = (f32[6]) get-tuple-element(%t), index=1
%v = f32[6] get-tuple-element(%u), index=0
%one = s32[] constant(1)
%j = s32[] add(%i, %one)
%w = f32[6] add(%v, %v)
%x = (f32[6]) tuple(%w)
ROOT %r = (s32[], (f32[6])) tuple(%j, %x)"""

_SLICED = np.array([-1, 2], np.float32)
_INDICES = np.array([[2], [0]], np.int32)
_ROWS = (
    "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
    "slice_sizes={1,4}"
)
_ADDED = (
    "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
    "index_vector_dim=1, to_apply=%add"
)
_TO_ROWS = _M + np.array([[1], [0], [1]], np.float32)


def beside() -> list[Case]:
    """What is started, and done."""
    one = np.int32(1)
    two = np.ones((2, 4), np.float32)
    group = "replica_groups={{0}}"
    return [
        _started("copy", (_V,), _V, tuple_of="f32[6], f32[6], u32[]"),
        _started("slice", (_V,), _SLICED, "slice={[1:3]}"),
        _started("dynamic-slice", (_V, one), _SLICED, "dynamic_slice_sizes={2}"),
        _started("dynamic-update-slice", (_V, _V[:2], one), np.array([3, 3, -1, 2, 7, 0], "f4")),
        _started("pad", (_V, np.float32(9)), np.append(_V, np.float32(9)), "padding=0_1"),
        _started("broadcast", (_V,), np.stack([_V, _V]), "dimensions={1}"),
        _started("sort", (_V,), np.sort(_V), "dimensions={0}, to_apply=%lt", (LESS,)),
        _started("gather", (_M, _INDICES), _M[[2, 0]], _ROWS),
        _started("scatter", (_M, _INDICES, two), _TO_ROWS, _ADDED, (ADD,)),
        _started("call", (_V,), _V**2, "to_apply=%square", (_SQUARE,)),
        _started("fusion", (_V,), _V**2, "kind=kLoop, calls=%square", (_SQUARE,)),
        _started("custom-call", (_V,), _V, 'custom_call_target="Sharding"'),
        _started("all-reduce", (_V,), _V, f"{group}, to_apply=%add", (ADD,), tuple_of="f32[6]"),
        _started("all-gather", (_V,), _V, f"{group}, dimensions={{0}}"),
        _started("reduce-scatter", (_V,), _V, f"{group}, to_apply=%add", (ADD,)),
        _started("all-to-all", (_V,), _V, group),
        _started("collective-permute", (_V,), _V, "source_target_pairs={{0,0}}"),
        Case(
            "async",
            module(
                f"{parameters(_V)}\n"
                "%s = ((f32[6]), f32[6], s32[]) async-start(%p0), calls=%square\n"
                "%u = ((f32[6]), f32[6], s32[]) async-update(%s)\n"
                "ROOT %d = f32[6]{0} async-done(%u)",
                _SQUARE,
            ),
            (_V,),
            (_V**2,),
        ),
        Case(
            "while started",
            module(
                f"{parameters(np.int32(0), _V)}\n"
                "%inner = (f32[6]) tuple(%p1)\n"
                "%t = (s32[], (f32[6])) tuple(%p0, %inner)\n"
                "%s = (((s32[], (f32[6]))), (s32[], (f32[6])), s32[]) while-start(%t), "
                "condition=%go_on, body=%step\n"
                "ROOT %w = (s32[], (f32[6])) while-done(%s)",
                _GO_ON,
                _STEP,
            ),
            (np.int32(0), _V),
            (np.int32(3), _V * 8),
        ),
    ]


def _started(  # noqa: PLR0913, PLR0917
    opcode: str,
    arguments: tuple[np.ndarray | np.generic, ...],
    expected: np.ndarray,
    how: str = "",
    computations: tuple[str, ...] = (),
    tuple_of: str = "",
) -> Case:
    """An operation in two: its start gives a tuple of operands, result, and a semaphore."""
    given = tuple(np.asarray(each) for each in arguments)
    extents = ",".join(map(str, expected.shape))
    result = f"f32[{extents}]"
    begun = f"({tuple_of or f'(f32[6]), {result}, s32[]'})"
    names = ", ".join(f"%p{i}" for i in range(len(given)))
    text = module(
        f"{parameters(*given)}\n"
        f"%begun = {begun} {opcode}-start({names}){f', {how}' if how else ''}\n"
        f"ROOT %done = {result} {opcode}-done(%begun)",
        *computations,
    )
    return Case(f"{opcode} started", text, given, (expected,))


def of_devices() -> list[Case]:
    """Among one device."""
    alone = ("all-gather", "reduce-scatter", "all-to-all",
             "collective-broadcast", "ragged-all-to-all")  # fmt: skip
    permute = "collective-permute"
    zero = np.array(0, np.uint32)
    return [
        simple("all-reduce", (_V,), _V, "replica_groups={}, to_apply=%add", computations=(ADD,)),
        *(simple(opcode, (_V,), _V, "replica_groups={{0}}") for opcode in alone),
        simple(permute, (_V,), _V, "source_target_pairs={{0,0}}"),
        simple(permute, (_V,), 0 * _V, "source_target_pairs={}", name="permute from none"),
        *(
            Case(f"{which}", module(f"ROOT %it = u32[] {which}()"), (), (zero,))
            for which in ("partition-id", "replica-id")
        ),
    ]


def linear_algebra() -> list[Case]:
    """Products, and what has a name of its own."""
    z = (_M[:, :2] + 1j * _M[:, 2:]).astype(np.complex64)
    spd = np.array([[4, 2], [2, 3]], np.float32)
    lower = np.linalg.cholesky(spd)
    b = np.array([[1, 2], [3, 4]], np.float32)
    image = np.arange(2 * 5 * 3, dtype=np.float32).reshape(2, 5, 3)
    kernel = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
    contracted = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    batched = "lhs_batch_dims={0}, rhs_batch_dims={0}, " + contracted.replace("1", "2").replace(
        "{0}", "{1}"
    )
    return [
        simple("dot", (_M, _M.T.copy()), _M @ _M.T, contracted),
        simple("dot", (z, z.T.copy()), z @ z.T, contracted, name="dot of complex", tolerance=1e-6),
        simple(
            "dot",
            (_M.astype("i4"), _M.T.astype("i4")),
            (_M @ _M.T).astype("i4"),
            contracted,
            name="dot of integers",
        ),
        simple(
            "dot",
            (image, image.transpose(0, 2, 1).copy()),
            image @ image.transpose(0, 2, 1),
            batched,
            name="dot with batches",
        ),
        simple(
            "convolution",
            (image, kernel),
            _convolved(image, kernel),
            "window={size=2}, dim_labels=b0f_0io->b0f",
        ),
        simple(
            "fft",
            (z,),
            np.fft.fft(z).astype(np.complex64),
            "fft_type=FFT, fft_length={2}",
            tolerance=1e-5,
        ),
        simple("cholesky", (spd,), lower, "lower=true", tolerance=1e-6),
        simple(
            "triangular-solve",
            (lower, b),
            np.linalg.solve(lower, b),
            "left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
            tolerance=1e-6,
        ),
        simple("custom-call", (_V,), _V, 'custom_call_target="Sharding"'),
    ]


def _convolved(image: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    places = range(image.shape[1] - kernel.shape[0] + 1)
    return np.stack(
        [np.einsum("bxf,xfo->bo", image[:, i : i + kernel.shape[0]], kernel) for i in places], 1
    )
