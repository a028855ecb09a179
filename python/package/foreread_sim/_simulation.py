"""One simulation, and what no policy can beat."""

import dataclasses

from . import _native
from ._cell import Cell
from ._native import Trace

PAGE_BYTES = 4096


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a simulation gave: the same for the same trace and cell, to the nanosecond."""

    elapsed_ns: int
    """Simulated time until the last read was done."""
    useful_bytes: int
    """Bytes that the readers got."""
    device_bytes: int
    """Bytes read from the device."""
    device_requests: int
    """Requests to the device."""
    device_busy_ns: int
    """Time that the parts of the device were busy, summed over the parts."""
    stalls: int
    """How often a reader waited for the device."""
    stalled_ns: int
    """How long readers waited for the device, summed over the readers."""
    referenced_pages: int
    """Pages that the reads asked for, each time they did."""
    hit_pages: int
    """Of those, found in the cache."""
    late_pages: int
    """Of those, in flight: read ahead too late."""
    missed_pages: int
    """Of those, neither in the cache nor in flight."""
    read_pages: int
    """Pages read from the device."""
    used_pages: int
    """Of those, used before they left the cache or the simulation ended."""
    thrashed_pages: int
    """Of those, evicted unused."""
    latency_p50_ns: int | None
    """Median latency of a read."""
    latency_p99_ns: int | None
    """99th percentile of the latency of a read."""
    latency_histogram: list[tuple[int, int]]
    """Latencies in nanoseconds, to three digits, and how often each occurred."""

    @property
    def throughput_mib_s(self) -> float:
        """MiB that the readers got per simulated second."""
        return self.useful_bytes / 2**20 / (self.elapsed_ns / 1e9) if self.elapsed_ns else 0.0

    @property
    def amplification(self) -> float | None:
        """Bytes read from the device per byte that the readers got; `None` without such bytes."""
        return self.device_bytes / self.useful_bytes if self.useful_bytes else None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """How fast the reads of a trace can be on a device, whatever reads ahead."""

    lower_bound_ns: int
    """No schedule is faster: the larger of `device_ns` and `processor_ns`."""
    device_ns: int
    """Time that the device needs to read every page once."""
    processor_ns: int
    """Time that the busiest reader needs if it never waits for the device."""
    fetched_pages: int
    """Pages that must be read from the device at least."""
    clairvoyant_ns: int | None
    """Time with read-ahead that knows all reads beforehand; `None` if it was not computed."""


def simulate(trace: Trace, cell: Cell | None = None) -> Outcome:
    """Simulates all reads of a trace. Other Python threads run meanwhile.

    Raises `UsageError` if the files of the trace do not fit on the device.
    """
    return Outcome(**_native.simulate(trace, (cell or Cell()).to_json()))


def limits(trace: Trace, cell: Cell | None = None, *, clairvoyant: bool = True) -> Limits:
    """Computes the limits for a trace. Other Python threads run meanwhile.

    `clairvoyant` takes up to 24 simulations. Raises `UsageError` as `simulate` does.
    """
    return Limits(**_native.limits(trace, (cell or Cell()).to_json(), clairvoyant))


def devices() -> dict[str, str]:
    """Names and summaries of the device models."""
    return dict(_native.devices())


def policies() -> dict[str, str]:
    """Names and summaries of the read-ahead algorithms."""
    return dict(_native.policies())
