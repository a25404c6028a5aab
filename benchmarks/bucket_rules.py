"""Prints what the bucket rules of servers pad, beside a plan: `python bucket_rules.py`.

The lengths are made, and not measured: log-normal, with the mean that was published of a trace. The
traces themselves are too large to be fetched for a benchmark; with BurstGPT's file (the column
"Request tokens" of https://github.com/HPMLL/BurstGPT), its own lengths are planned:
``JITCOUNT_BURSTGPT=BurstGPT_1.csv python benchmarks/bucket_rules.py``.

The rules, as read in August 2026:

- tpu-inference and vLLM on TPU, `get_token_paddings` in `tpu_inference/runner/utils.py`: from 16
  on twice as many each time; with VLLM_TPU_BUCKET_PADDING_GAP=128 so up to the gap, and from there
  on 128 more each time.
- sglang-jax, `PRECOMPILE_DEFAULT_TOKEN_PADDINGS` in `python/sgl_jax/srt/utils/common_utils.py`: the
  powers of two from 64 to 8192.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

import jitcount
from jitcount._show.parts import Heading, Part, Row, Table, figures, words
from jitcount._show.terminal import render

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Lengths: TypeAlias = NDArray[np.int64]

LONGEST = 8192
REQUESTS = 100_000


def log_normal(mean: float, sigma: float, seed: int) -> Lengths:
    """Lengths with this mean, and a long tail."""
    random = np.random.default_rng(seed)
    made = random.lognormal(np.log(mean) - sigma**2 / 2, sigma, REQUESTS)
    return np.clip(np.round(made), 1, LONGEST).astype(np.int64)


def traces() -> dict[str, Lengths]:
    """Lengths of prompts by the name of the trace whose mean they have."""
    found = {
        # Kwon et al., PagedAttention, SOSP 2023: on average 161 tokens.
        "like ShareGPT: made, mean 161": log_normal(161.3, 1.2, 0),
        # The trace of Wang et al., KDD 2025: on average 621 tokens, as others say who replay it.
        "like BurstGPT: made, mean 621": log_normal(621.0, 1.0, 1),
    }
    if path := os.environ.get("JITCOUNT_BURSTGPT"):
        with Path(path).open(encoding="utf-8", newline="") as file:
            tokens = [int(row["Request tokens"]) for row in csv.DictReader(file)]
        found["BurstGPT itself"] = np.clip([n for n in tokens if n], 1, LONGEST)
    return found


def rules() -> dict[str, list[int]]:
    """The sizes of each rule, for up to `LONGEST` tokens."""
    powers = [2**n for n in range(14)]
    with_gap = [16, 32, 64, 128, *range(256, LONGEST + 1, 128)]
    return {
        "powers of two": powers,
        "tpu-inference, vLLM on TPU": [size for size in powers if size >= 16],
        "the same, with a gap of 128": with_gap,
        "sglang-jax": [size for size in powers if size >= 64],
    }


def comparison(name: str, lengths: Lengths) -> list[Part]:
    """For each rule what it compiles and pads, and what a plan with as many sizes does."""
    rows: list[Row] = []
    for rule, sizes in rules().items():
        ruled = jitcount.plan_buckets(lengths, sizes=sizes)
        planned = jitcount.plan_buckets(lengths, len(ruled.buckets))
        fewest = fewest_sizes(lengths, ruled.padding)
        rows.append(
            (rule, f"{len(ruled.buckets)}", percent(ruled.padding), percent(planned.padding),
             f"{fewest}")
        )  # fmt: skip
    columns = figures("sizes", "padding", "of a plan with as many", "sizes of a plan as good")
    return [Heading(name), Table(words("rule") + columns, rows)]


def fewest_sizes(lengths: Lengths, padding: float) -> int:
    """How many sizes the smallest plan has that pads no more."""
    return next(
        k for k in range(1, 200) if jitcount.plan_buckets(lengths, k).padding <= padding + 1e-12
    )


def percent(share: float) -> str:
    """A share in percent."""
    return f"{100 * share:.1f} %"


if __name__ == "__main__":
    print(
        render([part for name, lengths in traces().items() for part in comparison(name, lengths)])
    )
