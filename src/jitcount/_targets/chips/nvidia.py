"""NVIDIA's GPUs, with the published figures by which XLA:GPU knows an absent device."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from jitcount._targets.chips.chip import Machine, Plugin, Tool, sides

# NVIDIA's assembler.
PTXAS = Tool("ptxas", package="nvidia", folders=("/usr/local/cuda/bin", "/opt/cuda/bin"))

PLUGIN = Plugin(
    compiler="XLA:GPU",
    modules=("jax_plugins.xla_cuda12", "jax_plugins.xla_cuda13"),
    command='pip install "jax[cuda12-local]" nvidia-cuda-nvcc-cu12',
    tools=(PTXAS,),
    chatter=("Could not find cuda drivers",),
)

# What one host of NVIDIA's own machines holds.
_GPUS_PER_HOST = 8


@dataclass(frozen=True, slots=True)
class NvidiaGpu:
    """An NVIDIA GPU; sizes are in bytes."""

    name: str
    description: str
    """The product's name, as NVIDIA sells it."""

    cores: int
    """Streaming multiprocessors."""

    fpus_per_core: int
    clock_ghz: float
    bandwidth: int
    l2_cache: int
    memory: int
    shared_memory_per_core: int
    shared_memory_optin: int
    capability: tuple[int, int]

    platform: ClassVar[str] = "cuda"
    plugin: ClassVar[Plugin] = PLUGIN
    smallest: ClassVar[str] = "1"

    def size_of(self, text: str, target: str) -> tuple[int, ...]:
        """The number of GPUs that the user wrote."""
        size = sides(text)
        if len(size) == 1:
            return size
        known = f"{self.platform}:{self.name}"
        raise ValueError(
            f"target {target!r} has no such size: {known}:8 stands for eight of {known}"
        )

    def machine(self, size: tuple[int, ...], devices: int) -> Machine:
        """A machine with that many GPUs, or as many as are needed, on as few hosts as hold them."""
        count = size[0] if size else devices
        hosts = math.ceil(count / _GPUS_PER_HOST)
        return Machine(
            count,
            {
                "platform": self.platform,
                "topology_name": "",
                "target_config": target_config(self),
                "topology": f"1x{hosts}x{min(count, _GPUS_PER_HOST)}",
            },
        )


GPUS = (
    NvidiaGpu(
        "v100", "Tesla V100-SXM2-16GB", 80, 64, 1.53, 898_048_000_000, 6_291_456,
        16_935_682_048, 98_304, 98_304, (7, 0),
    ),
    NvidiaGpu(
        "a100", "NVIDIA A100-SXM4-40GB", 108, 64, 1.41, 1_555_200_000_000, 41_943_040,
        42_331_013_120, 167_936, 166_912, (8, 0),
    ),
    NvidiaGpu(
        "h100", "NVIDIA H100 80GB HBM3", 132, 128, 1.98, 3_352_320_000_000, 52_428_800,
        84_942_979_072, 233_472, 232_448, (9, 0),
    ),
    NvidiaGpu(
        "h200", "NVIDIA H200", 132, 128, 1.98, 4_800_000_000_000, 52_428_800,
        151_397_597_184, 233_472, 232_448, (9, 0),
    ),
    NvidiaGpu(
        "b200", "NVIDIA B200", 148, 128, 1.965, 7_672_320_000_000, 132_644_864,
        191_514_411_008, 233_472, 232_448, (10, 0),
    ),
)  # fmt: skip


def target_config(gpu: NvidiaGpu) -> str:
    """The text proto by which XLA:GPU knows an absent device.

    Figures that are the same for all GPUs are written out here.
    """
    major, minor = gpu.capability
    return f"""
        gpu_device_info {{
          threads_per_block_limit: 1024
          threads_per_warp: 32
          shared_memory_per_block: 49152
          shared_memory_per_core: {gpu.shared_memory_per_core}
          threads_per_core_limit: 2048
          core_count: {gpu.cores}
          fpus_per_core: {gpu.fpus_per_core}
          block_dim_limit_x: 2147483647
          block_dim_limit_y: 65535
          block_dim_limit_z: 65535
          memory_bandwidth: {gpu.bandwidth}
          l2_cache_size: {gpu.l2_cache}
          clock_rate_ghz: {gpu.clock_ghz}
          device_memory_size: {gpu.memory}
          shared_memory_per_block_optin: {gpu.shared_memory_optin}
          cuda_compute_capability {{ major: {major} minor: {minor} }}
          registers_per_core_limit: 65536
          registers_per_block_limit: 65536
          device_address_bits: 64
          name: "{gpu.description}"
        }}
        platform_name: "CUDA"
        dnn_version_info {{ major: 9 minor: 8 }}
        device_description_str: "{gpu.description}"
    """
