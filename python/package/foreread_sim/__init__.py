"""The simulator of foreread: traces, devices, read-ahead policies, and experiments at scale.

`simulate` runs one trace through one `Cell`; `run` runs a `Plan` of many. Sizes are in bytes or,
where the name says so, in KiB or pages of 4 KiB; times are in nanoseconds.
"""

from ._cell import Cell, grid
from ._engines import Engine, Local, Ray
from ._errors import ForereadError, NotPermittedError, UsageError
from ._native import SIMULATOR_VERSION, Trace
from ._plan import Plan, Result, Shard, run, write_manifest
from ._record import Record, open_record
from ._simulation import Limits, Outcome, devices, limits, policies, simulate

__all__ = [
    "SIMULATOR_VERSION",
    "Cell",
    "Engine",
    "ForereadError",
    "Limits",
    "Local",
    "NotPermittedError",
    "Outcome",
    "Plan",
    "Ray",
    "Record",
    "Result",
    "Shard",
    "Trace",
    "UsageError",
    "devices",
    "grid",
    "limits",
    "open_record",
    "policies",
    "run",
    "simulate",
    "write_manifest",
]
