import ml_dtypes
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitcount._numerics.arrays import Array, decode, encode, ulps_between

DTYPES = [
    *(np.bool_, np.int8, np.int32, np.int64, np.uint8, np.uint32, np.uint64),
    *(np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.complex64, np.complex128),
]


@given(st.sampled_from(DTYPES), st.binary(min_size=48, max_size=48))
def test_every_bit_comes_back(dtype: type, raw: bytes) -> None:
    values: np.ndarray = np.frombuffer(raw, np.uint8 if dtype is np.bool_ else dtype).reshape(1, -1)
    values = values.astype(np.bool_) if dtype is np.bool_ else values
    read = msgspec.json.decode(msgspec.json.encode(encode(values)), type=Array)
    assert decode(read).dtype == values.dtype
    assert decode(read).shape == values.shape
    assert decode(read).tobytes() == values.tobytes()


@given(st.floats(-(2.0**90), 2.0**90, width=32), st.integers(0, 9))
def test_ulps_are_steps_of_nextafter(number: float, steps: int) -> None:
    one = other = np.float32(number)
    for _ in range(steps):
        other = np.nextafter(other, np.float32(np.inf))
    assert ulps_between(one, other) == steps


@pytest.mark.parametrize(
    ("dtype", "shape", "data", "message"),
    [
        ("float8", (1,), "00", "an array of unknown dtype 'float8'"),
        ("float32", (-1,), "", "an array of shape (-1,)"),
        ("float32", (2,), "00000000", "float32[2] takes 16 digits; it has 8"),
        ("int8", (1,), "zz", "an array's data is not hexadecimal"),
    ],
)
def test_an_array_that_cannot_be_is_refused(
    dtype: str, shape: tuple[int, ...], data: str, message: str
) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 (the whole text is asserted)
        Array(dtype, shape, data)
    assert str(raised.value) == message
