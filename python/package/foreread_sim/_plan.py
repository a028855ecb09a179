"""Experiments: traces × cells, simulated by an engine into a directory of results."""

import dataclasses
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _native
from ._cell import Cell
from ._engines import Engine, Local, ShardFailure
from ._errors import ForereadError, UsageError
from ._native import Trace
from ._store import is_url, open_store

PROGRESS_INTERVAL_SECONDS = 1.0
SETTLED_AFTER_SHARDS = 3


@dataclasses.dataclass(frozen=True)
class Shard:
    """Cells of one trace that one process simulates."""

    name: str
    """Follows from the cells; the result file is `part-NAME.parquet`."""
    estimated_seconds: float
    """Estimated time on one processor."""
    estimated_bytes: int
    """Estimated memory for the trace; the simulated page cache needs more."""
    cells: int
    """Number of cells."""
    json: str = dataclasses.field(repr=False)
    """The shard as `foreread sim shard` reads it."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """Traces × cells. A trace is a path, or a `Trace` that was read from or saved to a file."""

    traces: Sequence[str | os.PathLike[str] | Trace]
    grid: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    """Fields of `Cell` with their values (see `grid`): every combination is simulated."""
    cells: Sequence[Cell] = ()
    """Further cells. Without cells and grid, the default cell is simulated."""
    shard_seconds: float = 20.0
    """Estimated time of a shard, in seconds on one processor."""

    def to_json(self) -> str:
        """The plan as `foreread sim plan` reads it. Paths are absolute."""
        return json.dumps(
            {
                "traces": [os.path.abspath(_path(trace)) for trace in self.traces],
                "grid": {name: list(values) for name, values in self.grid.items()},
                "cells": [cell.to_dict() for cell in self.cells],
                "shard_seconds": self.shard_seconds,
            }
        )

    def shards(self, out: str | os.PathLike[str]) -> tuple[list[Shard], int, int]:
        """The shards that `out` has no results of, all cells, and how many of them are finished.

        Raises `ForereadError` if a cell is invalid or traces cannot be read; all such traces are
        named, and nothing is simulated.
        """
        shards, cells, finished = _native.plan_shards(self.to_json(), open_store(out).local())
        return [Shard(*shard) for shard in shards], cells, finished


def _path(trace: str | os.PathLike[str] | Trace) -> str:
    if not isinstance(trace, Trace):
        return os.fspath(trace)
    if trace.path is None:
        raise UsageError(f"{trace!r} is not in a file: save it first with trace.save(path)")
    return os.fspath(trace.path)


@dataclasses.dataclass(frozen=True)
class Result:
    """Results in a directory or an object store."""

    out: Path | str
    paths: list[Path]
    """The Parquet files; of an object store, their copies in the local mirror."""
    digest: str
    """SHA-256 of all rows; the same for the same cells, whatever simulated them."""
    cells: dict[str, int]
    """Number of cells by status: `ok`, `error`, `poisoned`."""
    failed: dict[str, str] = dataclasses.field(default_factory=dict)
    """Names of shards without results, and why. A later `run` tries them again."""

    @staticmethod
    def open(out: str | os.PathLike[str]) -> "Result":
        """Reads the results in `out`. Raises `ForereadError` if a file is damaged."""
        store = open_store(out)
        return Result(out=store.address, **_native.result_set(store.local()))

    def table(self) -> "_native.ArrowStream":
        """All rows as a stream of Arrow record batches, which can be consumed once.

        `pyarrow.table(result.table())`, `polars.from_arrow(result.table())` and DuckDB take it.
        """
        return _native.result_table(self.paths)


def run(
    plan: Plan,
    out: str | os.PathLike[str],
    *,
    engine: Engine | None = None,
    progress: bool | Callable[[str], None] = False,
) -> Result:
    """Simulates what `out` has no results of yet, and returns all results in `out`.

    `out` is a directory, or the URL of an object store that `pyarrow.fs` opens, such as
    `s3://bucket/prefix`. Credentials come from the environment.

    Runs that were interrupted continue where they stopped: results are published per shard, as a
    whole or not at all. The engine decides where shards run; the default is `Local()`. `progress`
    prints a line per second on stderr, or calls a function with the line.

    Raises `ForereadError` as `Plan.shards` does. A shard that fails does not end the others; it is
    listed in `Result.failed`.
    """
    store = open_store(out)
    engine = engine or Local()
    shards, cells, finished = plan.shards(out)
    report = _Progress(progress, shards, cells, finished)
    failed: dict[str, str] = {}
    for shard, failure in engine.run(shards, store.address):
        if isinstance(failure, ShardFailure) and failure.is_fatal:
            store.poison(shard.json, shard.name, failure.reason)
        elif failure is not None:
            failed[shard.name] = failure.reason
        report.finish(shard)
    if shards and len(failed) == len(shards):
        raise ForereadError(f"all {len(failed)} shards failed: {next(iter(failed.values()))}")
    return dataclasses.replace(Result.open(out), failed=failed)


class _Progress:
    def __init__(
        self,
        show: bool | Callable[[str], None],
        shards: Iterable[Shard],
        cells: int,
        finished: int,
    ) -> None:
        self._print: Callable[[str], None] | None = None
        if callable(show):
            self._print = show
        elif show:
            self._print = lambda line: print(line, file=sys.stderr, flush=True)
        self._cells, self._finished = cells, finished
        self._open_seconds = sum(shard.estimated_seconds for shard in shards)
        self._done_seconds = 0.0
        self._shards = 0
        self._started = self._printed = time.monotonic()

    def finish(self, shard: Shard) -> None:
        self._finished += shard.cells
        self._done_seconds += shard.estimated_seconds
        self._shards += 1
        now = time.monotonic()
        is_last = self._finished >= self._cells
        if self._print is None or (now - self._printed < PROGRESS_INTERVAL_SECONDS and not is_last):
            return
        self._printed = now
        line = f"{self._finished} of {self._cells} cells"
        left = self._open_seconds - self._done_seconds
        # Estimates are proportional to the time, not equal to it: the finished shards calibrate.
        if self._shards >= SETTLED_AFTER_SHARDS and left > 0 and not is_last:
            seconds = left * (now - self._started) / self._done_seconds
            line += f", {_duration(seconds)} left"
        self._print(line)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


MANIFEST_COMMANDS = {
    "parallel": (
        "seq 0 {last} | parallel --joblog {out}/joblog "
        "foreread sim shard {manifest} --index {{}} --out {out}"
    ),
    "slurm": (
        "sbatch --array=0-{last} --requeue --wrap "
        "'foreread sim shard {manifest} --index $SLURM_ARRAY_TASK_ID --out {out}'"
    ),
    "kubernetes": "foreread sim shard {manifest} --index $JOB_COMPLETION_INDEX --out {out}",
}


def write_manifest(plan: Plan, out: str | os.PathLike[str], kind: str) -> tuple[Path, str]:
    """Writes a manifest of the open shards into `out` for a scheduler without Python.

    `kind` is `parallel` (GNU parallel), `slurm` or `kubernetes`. Returns the path of the manifest
    and the command: what to run, or for Kubernetes the command of an Indexed Job's container.
    Raises `UsageError` as `Plan.shards` does, or if nothing is left to simulate.
    """
    if kind not in MANIFEST_COMMANDS:
        raise UsageError(f"unknown kind {kind!r}: one of {', '.join(MANIFEST_COMMANDS)}")
    if is_url(out):
        raise UsageError("a manifest needs a directory: `foreread sim shard` writes to no bucket")
    out = Path(out).absolute()
    path, shards = _native.manifest(plan.to_json(), out)
    if not shards:
        raise UsageError(f"{out} has results of all cells: nothing is left to simulate")
    command = MANIFEST_COMMANDS[kind].format(last=shards - 1, manifest=path, out=out)
    return path, command
