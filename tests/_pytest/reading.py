"""What pytest printed, and what it should have."""

import re
from pathlib import Path


def whole(output: str) -> str:
    """All that was printed, with the times taken out, and with them what depends on their width."""
    output = re.sub(r"[\d.]+ ?(s|ms|µs)\b", "TIME", output)
    output = re.sub(r"(?<=\S) {3,}(?=[^\s[])", "   ", re.sub("─+", "───", output))
    return re.sub(r"(?<= TIME) =+$|^=+ (?=.* in TIME)", "", output, flags=re.MULTILINE)


def golden(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
