"""A trainer of a library's, called as its users call it: one line, and a callback."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "site-packages"))

import acting


class Reacher:
    observation_size = 5


def progress(step, metrics):
    print(step, f"{metrics['mean']:.3f} {metrics['worst']:.3f}")


acting.train(Reacher(), num_steps=3, progress_fn=progress)
