"""Records of studies: what `foreread tune` and `foreread sweep` measured."""

import dataclasses
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import _native
from ._errors import ForereadError, UsageError

# Of `foreread`: usage, and not permitted or not supported.
USAGE_CODE = 2


@dataclasses.dataclass(frozen=True)
class Record:
    """A record of runs (`runs.sqlite`), read by the program `foreread`."""

    path: Path
    runs: list[dict[str, Any]]
    """The runs, latest first, as `foreread runs list --json` prints them."""
    foreread: str
    """The program."""

    def table(self, runs: Sequence[int] | None = None) -> "_native.ArrowStream":
        """The trials of these runs as a stream of Arrow record batches; of all runs by default.

        `pyarrow.table(record.table())` has one row for each trial, with `throughput_mib_s`,
        `amplification`, `latency_us_p50` and others. Raises `UsageError` if there is no such run.
        """
        numbers = [run["run"] for run in self.runs] if runs is None else list(runs)
        if not numbers:
            raise UsageError(f"{self.path} has no runs")
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "trials.parquet"
            words = ["report", *map(str, numbers), "--output", str(file)]
            _run(self.foreread, self.path, words)
            # It stays readable: it is open.
            return _native.result_table([file])


def open_record(path: str | os.PathLike[str], *, foreread: str = "foreread") -> Record:
    """Opens the record of the studies that the program `foreread` made.

    `foreread` is the program's name or path: it computes the figures of each trial from what was
    recorded. Raises `UsageError` if there is no record, `ForereadError` if it cannot be read or the
    program cannot be run.
    """
    path = Path(path).absolute()
    if not path.is_file():
        raise UsageError(f"there is no record {path}")
    listed = json.loads(_run(foreread, path, ["runs", "list", "--json"]))
    return Record(path, listed["runs"], foreread)


def _run(foreread: str, path: Path, words: list[str]) -> str:
    """What the program prints; its own message if it fails."""
    command = [foreread, *words, "--store", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ForereadError(f"cannot run {foreread}: {error.strerror}") from error
    if done.returncode == 0:
        return done.stdout
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    message = errors[0].removeprefix("error: ") if errors else done.stderr.strip()
    raise (UsageError if done.returncode == USAGE_CODE else ForereadError)(message)
