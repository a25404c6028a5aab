"""What travels between a process and its compilers: plain values as JSON, and a block of bytes.

No pickle: what comes from the other side is data, never code.
"""

from __future__ import annotations

import json
import struct
from typing import IO, Any

Message = tuple[dict[str, Any], bytes]

_LENGTHS = struct.Struct("<QQ")


def send(stream: IO[bytes], values: dict[str, Any], block: bytes = b"") -> None:
    """Write a message."""
    text = json.dumps(values).encode()
    stream.write(_LENGTHS.pack(len(text), len(block)))
    stream.write(text)
    stream.write(block)
    stream.flush()


def receive(stream: IO[bytes]) -> Message | None:
    """Read the next message; None where the other side has ended, in the midst of one even."""
    lengths = stream.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    text_length, block_length = _LENGTHS.unpack(lengths)
    text, block = stream.read(text_length), stream.read(block_length)
    if len(text) < text_length or len(block) < block_length:
        return None
    return json.loads(text), block
