"""What pytest printed, as tests compare it."""

import re


def whole(output: str) -> str:
    """All that was printed, with the times taken out, and with them what depends on their width."""
    output = re.sub(r"[\d.]+ ?(s|ms|µs)\b", "TIME", output)
    output = re.sub(r"(?<=\S) {3,}(?=[^\s[])", "   ", re.sub("─+", "───", output))
    output = re.sub(r"^ +(?=time   )", "", output, flags=re.MULTILINE)
    return re.sub(r"(?<= TIME) =+$|^=+ (?=.* in TIME)", "", output, flags=re.MULTILINE)
