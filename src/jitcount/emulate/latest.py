"""Bytes that are kept for a while."""

from __future__ import annotations

import threading


class Latest:
    """What was put last, up to so many bytes in all."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[bytes, bytes] = {}
        self._size = 0
        self._changing = threading.Lock()

    def get(self, key: bytes) -> bytes | None:
        """What is kept; None where nothing is, or no longer."""
        return self._kept.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        """Keep it, and let go of the oldest."""
        with self._changing:
            self._size += len(value) - len(self._kept.pop(key, b""))
            self._kept[key] = value
            while self._size > self._most:
                self._size -= len(self._kept.pop(next(iter(self._kept))))
