"""The one table of what can be compiled for: each chip with the figures that its compiler needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Tpu:
    """A TPU; libtpu knows all else by its name."""

    name: str
    """As users write it: ``"v5e"``."""

    system: str
    """As libtpu writes it."""

    layout: tuple[int, ...]
    """The smallest slice, in chips: one host's."""

    devices_per_chip: int = 1
    options: dict[str, Any] = field(default_factory=dict)


TPUS = (
    # With "megacore" the two cores of a chip are one device, as they are for JAX on a real v4.
    Tpu("v4", "v4", (2, 2, 1), options={"chip_config_name": "megacore"}),
    Tpu("v5e", "v5e", (2, 2)),
    Tpu("v5p", "v5p", (2, 2, 1)),
    Tpu("v6e", "v6e", (2, 2)),
    Tpu("7x", "tpu7x", (2, 2, 1), devices_per_chip=2),
)


@dataclass(frozen=True, slots=True)
class Gpu:
    """An NVIDIA GPU, by its published figures; sizes are in bytes."""

    name: str
    product: str
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


GPUS = (
    Gpu(
        "v100", "Tesla V100-SXM2-16GB", 80, 64, 1.53, 898_048_000_000, 6_291_456,
        16_935_682_048, 98_304, 98_304, (7, 0),
    ),
    Gpu(
        "a100", "NVIDIA A100-SXM4-40GB", 108, 64, 1.41, 1_555_200_000_000, 41_943_040,
        42_331_013_120, 167_936, 166_912, (8, 0),
    ),
    Gpu(
        "h100", "NVIDIA H100 80GB HBM3", 132, 128, 1.98, 3_352_320_000_000, 52_428_800,
        84_942_979_072, 233_472, 232_448, (9, 0),
    ),
    Gpu(
        "h200", "NVIDIA H200", 132, 128, 1.98, 4_800_000_000_000, 52_428_800,
        151_397_597_184, 233_472, 232_448, (9, 0),
    ),
    Gpu(
        "b200", "NVIDIA B200", 148, 128, 1.965, 7_672_320_000_000, 132_644_864,
        191_514_411_008, 233_472, 232_448, (10, 0),
    ),
)  # fmt: skip


def target_config(gpu: Gpu) -> str:
    """The text proto by which XLA:GPU knows a device that is not there.

    What is the same for all of them stands here as a number.
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
          name: "{gpu.product}"
        }}
        platform_name: "CUDA"
        dnn_version_info {{ major: 9 minor: 8 }}
        device_description_str: "{gpu.product}"
    """
