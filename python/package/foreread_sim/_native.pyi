from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

class ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

SIMULATOR_VERSION: str
"""Version of the simulator. Results of different versions are never mixed."""

class Trace:
    """The reads and writes of programs, in order of time.

    A trace has `__arrow_c_stream__`, so `pyarrow.table(trace)`, `polars.from_arrow(trace)` and
    DuckDB read it. Its columns are `time_ns`, `process`, `open_file`, `file`, `mapped`, `write`,
    `offset_bytes` and `length_bytes`.
    """

    @staticmethod
    def open(path: str | PathLike[str], *, format: str | None = None) -> Trace:
        """Reads a trace in any format that `foreread trace` reads, packed or not.

        `format` names the format; without it, the beginning of the file decides. A trace of more
        than 1,048,576 records in foreread's own format stays in its file: simulations read it from
        there, in memory that does not grow with its length.

        Raises `UsageError` if the format is unknown, `ForereadError` if the file is damaged or
        cannot be read.
        """

    @staticmethod
    def from_arrow(table: ArrowStream, *, name: str = "arrow") -> Trace:
        """Makes a trace of a table with the columns `offset_bytes` and `length_bytes`.

        The other columns of a trace are optional. Advice of programs (`posix_fadvise`) is not part
        of a table. Raises `UsageError` if a column is missing, or has missing or negative values.
        """

    @staticmethod
    def from_workload(
        declaration: str,
        *,
        reads: int,
        file_bytes: int = 64 << 20,
        seed: int = 0,
        path: str | PathLike[str] | None = None,
    ) -> Trace:
        """Makes a trace of the first `reads` reads of a workload, whose readers take turns.

        `declaration` is a name that `foreread workloads` lists, or a declaration in TOML. Files
        without a declared size have `file_bytes`. With `path`, the trace is written to this file
        read by read, so that it may be of any length. Raises `UsageError` if the declaration is
        invalid, `ForereadError` if the file cannot be written.
        """

    def save(self, path: str | PathLike[str]) -> Trace:
        """Writes the trace in foreread's format and returns the trace with this path."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...
    @property
    def records(self) -> int:
        """Number of reads and writes."""

    @property
    def reads(self) -> int:
        """Number of reads. Only these are simulated."""

    @property
    def files(self) -> list[tuple[str, int]]:
        """Names of the files with their sizes in bytes."""

    @property
    def is_timed(self) -> bool:
        """Whether the records have times."""

    @property
    def duration_ns(self) -> int:
        """Time from the first record to the last, in nanoseconds."""

    @property
    def requested_bytes(self) -> int:
        """Sum of the lengths of all reads, in bytes.

        Of a trace that stays in its file, the first call of this or `digest` reads all of it, and
        raises `ForereadError` if it is damaged.
        """

    @property
    def digest(self) -> str:
        """SHA-256 of the records, files and processes; it does not depend on the file format."""

    @property
    def path(self) -> Path | None:
        """The file that the trace was read from or saved to."""

def check_cell(json: str) -> None: ...
def simulate(trace: Trace, json: str) -> dict[str, Any]: ...
def limits(trace: Trace, json: str, clairvoyant: bool) -> dict[str, Any]: ...
def devices() -> list[tuple[str, str]]: ...
def policies() -> list[tuple[str, str]]: ...
def plan_shards(
    json: str, out: str | PathLike[str]
) -> tuple[list[tuple[str, float, int, int, str]], int, int]: ...
def run_shard(json: str, out: str | PathLike[str]) -> tuple[int, int, float, float]: ...
def shard_is_finished(json: str, out: str | PathLike[str]) -> bool: ...
def poison_shard(json: str, out: str | PathLike[str], reason: str) -> None: ...
def manifest(json: str, out: str | PathLike[str]) -> tuple[Path, int]: ...
def result_set(out: str | PathLike[str]) -> dict[str, Any]: ...
def result_table(paths: Sequence[str | PathLike[str]]) -> ArrowStream: ...
