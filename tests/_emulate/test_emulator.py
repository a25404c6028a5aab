"""What is kept for a while."""

from jitcount._emulate.emulator import BytesCache


def test_the_oldest_goes_when_there_is_no_room() -> None:
    kept: BytesCache[bytes] = BytesCache(10, len)
    kept.put(b"one", b"12345")
    kept.put(b"two", b"12345")
    assert (kept.get(b"one"), kept.get(b"two")) == (b"12345", b"12345")
    kept.put(b"two", b"123456")
    assert (kept.get(b"one"), kept.get(b"two")) == (None, b"123456")


def test_what_is_too_large_alone_is_not_kept() -> None:
    kept: BytesCache[bytes] = BytesCache(3, len)
    kept.put(b"one", b"1234")
    assert kept.get(b"one") is None
