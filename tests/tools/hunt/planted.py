"""Backends with a fault, for the hunt to find. A worker's process imports them by name."""

import os
import time
from typing import Any

import numpy as np

from tools.hunt.worker import Job, Outcome, run_job

Results = list[np.ndarray[Any, Any]]


def wrong_after_reduction(job: Job) -> Results:
    """A sum is one too large in compiled programs."""
    found = run_job(job)
    if job.compiled and "jnp.sum(" in job.text:
        found[0] = found[0] + np.ones((), found[0].dtype)
    return found


def crash(job: Job) -> Results:
    """The process ends, with words of XLA's."""
    os.write(2, b"F0000 00:00:17.0 12 shape.h:2] Check failed: rank <= 6 (8 vs. 6)\n")
    os.abort()


def hang(job: Job) -> Results:
    """There is no end."""
    time.sleep(600)
    return []


def refuse(job: Job) -> Results:
    """The compiler does not want to."""
    raise NotImplementedError(f"no {job.text}")


def answer(job: Job) -> Results:
    """Without JAX."""
    return [np.asarray(len(job.text))]


class InThisProcess:
    """What a worker does, without a process of its own."""

    def __init__(self, run: Any) -> None:
        self.run, self.job = run, Job("", ())

    def start(self, job: Job) -> None:
        self.job = job

    def finish(self) -> Outcome:
        return Outcome(self.run(self.job))
