"""The log density of a library's mixture, for samples of another number each time."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "site-packages"))

import numpy as np
from mixtures import Mixture, Normal

components = Normal(np.array([-1.0, 2.0], "float32"), np.array([0.5, 1.0], "float32"))
mixture = Mixture(np.array([0.3, 0.7], "float32"), components)
random = np.random.default_rng(0)
for count in (5, 8, 11):
    samples = random.normal(size=count).astype("float32")
    print(f"{float(np.sum(mixture.log_prob(samples))):.2f}")
