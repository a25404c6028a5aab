"""An environment of a library's that is stepped from Python, outside of jit."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "site-packages"))

import jax
import numpy as np
from control import Parameters, Pendulum

env, params = Pendulum(), Parameters()
keys = jax.random.split(jax.random.key(0), 4)
observation, state = env.reset(keys[0], params)
for key in keys[1:]:
    observation, state, reward, done = env.step(key, state, np.float32(0.5), params)
    print(f"{float(reward):.3f}", bool(done))
