"""Experiments: engines, interruptions, errors."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import foreread_sim as fs

FOREREAD = os.environ.get("FOREREAD")


def plan(csv_trace, **changes):
    grid = fs.grid(
        device="hdd-2008", policy=["linux-6.18", "none"], read_ahead_kib=[128, 1024], seed=range(3)
    )
    traces = [csv_trace("a.csv"), csv_trace("b.csv", stride=3)]
    return fs.Plan(traces, **{"grid": grid, "shard_seconds": 1e-9, **changes})


def test_a_run_goes_on_where_it_stopped(csv_trace, tmp_path):
    experiment = plan(csv_trace)
    lines = []
    whole = fs.run(experiment, tmp_path / "whole", progress=lines.append)
    assert whole.cells == {"ok": 24} and not whole.failed
    assert lines[-1].startswith("24 of 24 cells")
    some = fs.run(plan(csv_trace, grid={**experiment.grid, "seed": [1]}), tmp_path / "parts")
    times = {path: path.stat().st_mtime_ns for path in some.paths}
    assert experiment.shards(tmp_path / "parts")[1:] == (24, 8)
    parts = fs.run(experiment, tmp_path / "parts", engine=fs.Local(threads=1))
    assert parts.digest == whole.digest and len(parts.paths) == 24
    assert all(path.stat().st_mtime_ns == then for path, then in times.items())
    assert fs.run(experiment, tmp_path / "parts") == parts


KILLED = """
import os, signal, sys
import foreread_sim as fs

class Killed(fs.Local):
    def run(self, shards, out):
        for number, result in enumerate(super().run(shards, out)):
            if number == 9:
                os.kill(os.getpid(), signal.SIGKILL)
            yield result

plan = fs.Plan(sys.argv[2:], fs.grid(device="hdd-2008", seed=range(20)), shard_seconds=1e-9)
fs.run(plan, sys.argv[1], engine=Killed(threads=2))
"""


def test_a_killed_driver_loses_only_what_was_running(csv_trace, tmp_path):
    traces = [str(csv_trace("a.csv")), str(csv_trace("b.csv", stride=3))]
    out = tmp_path / "killed"
    driver = subprocess.run([sys.executable, "-c", KILLED, str(out), *traces])
    assert driver.returncode == -signal.SIGKILL
    experiment = fs.Plan(traces, fs.grid(device="hdd-2008", seed=range(20)), shard_seconds=1e-9)
    finished = experiment.shards(out)[2]
    assert 10 <= finished < 40
    whole = fs.run(experiment, tmp_path / "whole")
    assert fs.run(experiment, out).digest == whole.digest


def test_errors_are_rows_and_a_bad_shard_does_not_end_the_others(csv_trace, tmp_path):
    recorded = fs.Cell(device="hdd-2008", pace="recorded")
    result = fs.run(plan(csv_trace, cells=[recorded]), tmp_path / "out")
    assert result.cells == {"ok": 24, "error": 2}

    class Changing(fs.Local):
        def run(self, shards, out):
            csv_trace("b.csv", stride=5)
            yield from super().run(shards, out)

    result = fs.run(plan(csv_trace), tmp_path / "changed", engine=Changing())
    assert result.cells == {"ok": 12} and len(result.failed) == 12
    assert "has changed" in next(iter(result.failed.values()))


def test_mistakes_are_named_before_anything_runs(csv_trace, tmp_path):
    with pytest.raises(fs.UsageError, match="unknown key 'policies'"):
        fs.grid(policies=["none"])
    with pytest.raises(fs.UsageError, match="save it first"):
        fs.Plan([memory_trace()]).to_json()
    (tmp_path / "cut.csv").write_text("offset,length\n0,4096\n1")
    traces = [*plan(csv_trace).traces, tmp_path / "cut.csv"]
    with pytest.raises(fs.ForereadError, match="cut.csv:3"):
        fs.run(fs.Plan(traces), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(fs.ForereadError, match="remove it"):
        (tmp_path / "odd").mkdir()
        (tmp_path / "odd" / "part-0.parquet").write_bytes(b"PAR1 and then nothing PAR1")
        fs.run(plan(csv_trace), tmp_path / "odd")


def memory_trace():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    return fs.Trace.from_arrow(pa.table({"offset_bytes": [0], "length_bytes": [4096]}))


def test_a_manifest_gives_the_same_results(csv_trace, tmp_path):
    if not FOREREAD:
        pytest.skip("FOREREAD does not name the binary")
    out = tmp_path / "out"
    manifest, command = fs.write_manifest(plan(csv_trace), out, "slurm")
    assert "--array=0-23 " in command
    here = fs.run(plan(csv_trace), tmp_path / "here")
    for line in range(24):
        shard = [FOREREAD, "sim", "shard", manifest, "--index", str(line), "--out", out]
        subprocess.run(shard, check=True, capture_output=True)
    results = subprocess.run(
        [FOREREAD, "sim", "results", out, "--json"], check=True, capture_output=True, text=True
    )
    assert json.loads(results.stdout)["digest"] == here.digest
    with pytest.raises(fs.UsageError, match="nothing is left"):
        fs.write_manifest(plan(csv_trace), out, "parallel")
    with pytest.raises(fs.UsageError, match="slurm"):
        fs.write_manifest(plan(csv_trace), out, "pbs")


@pytest.mark.parametrize(("kind", "program"), [("parallel", "parallel"), ("slurm", "sbatch")])
def test_a_scheduler_runs_a_manifest(kind, program, csv_trace, tmp_path):
    if not FOREREAD:
        pytest.skip("FOREREAD does not name the binary")
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    if kind == "slurm" and subprocess.run(["sinfo"], capture_output=True).returncode != 0:
        pytest.skip("no Slurm controller answers")
    out = tmp_path / "out"
    _, command = fs.write_manifest(plan(csv_trace), out, kind)
    path = f"{Path(FOREREAD).parent}:{os.environ['PATH']}"
    subprocess.run(
        command, shell=True, check=True, cwd=tmp_path, env={**os.environ, "PATH": path}
    )
    wanted = fs.run(plan(csv_trace), tmp_path / "here").digest
    results = [FOREREAD, "sim", "results", out, "--json"]
    deadline = time.monotonic() + 60
    while True:
        found = subprocess.run(results, capture_output=True, text=True)
        if found.returncode == 0 and json.loads(found.stdout)["digest"] == wanted:
            break
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
