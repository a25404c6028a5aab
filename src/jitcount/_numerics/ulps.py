"""How many ulps a single operation is off: as a rule, and at most.

Both stand on what is published, not on what a backend happened to give.

- The exhaustive tests of XLA (in its sources, those of unary functions) run every
  float32 through each function on each platform. They allow 2 ulps for `sqrt`, `rsqrt`, `sin` and
  `cos`, 4 for `tan`, 1 for `exp` and `expm1` on the CPU, and 20 for all others here.
- The CUDA C++ Programming Guide, "Mathematical Functions", gives the largest errors of NVIDIA's:
  `expf` 2, `logf` 1, `tanhf` 2, `sinf` 2, `tanf` 4, `erff` 2, `expm1f` 1, `log1pf` 1, `rsqrtf` 2.
  The fast division of PTX (`div.full`), which XLA may use, is off by 2.

`LIKELY` leaves an ulp or more above the largest of these, since nothing is published for TPUs;
XLA:GPU approximates `tanh` by itself, in more steps. `POSSIBLE` is what XLA's own tests let pass.
"""

from __future__ import annotations

# Rounded to the nearest on all backends: IEEE 754.
_NEAREST = 0.5

LIKELY = {
    "add": _NEAREST,
    "multiply": _NEAREST,
    "divide": 3.0,
    "sqrt": 3.0,
    "rsqrt": 4.0,
    "exp": 4.0,
    "expm1": 4.0,
    "log": 4.0,
    "log1p": 4.0,
    "tanh": 8.0,
    "sin": 4.0,
    "cos": 4.0,
    "tan": 6.0,
    "erf": 4.0,
    # 1 / (1 + exp(-x)): an exponential, a sum and a quotient, one upon another.
    "logistic": 4.0 + _NEAREST + 3.0,
}

_IN_XLAS_TESTS = 20.0

POSSIBLE = LIKELY | dict.fromkeys(
    ("exp", "expm1", "log", "log1p", "tanh", "erf", "logistic"), _IN_XLAS_TESTS
)
