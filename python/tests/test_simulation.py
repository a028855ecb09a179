"""One simulation: arguments, errors, equality with the binary, threads."""

import json
import os
import subprocess
import threading
import time

import pyarrow as pa
import pytest

import foreread_sim as fs

FOREREAD = os.environ.get("FOREREAD")
SMALL = {"device": "hdd-2008", "cache_bytes": 1 << 26}


def test_a_trace_is_described(csv_trace):
    trace = fs.Trace.open(csv_trace(stride=2))
    assert (trace.records, trace.reads, len(trace)) == (500, 500, 500)
    assert trace.requested_bytes == 500 * 4096
    assert not trace.is_timed and trace.duration_ns == 0
    assert [size for _, size in trace.files] == [(499 * 2 + 1) * 4096]
    assert len(trace.digest) == 64


def test_the_digest_does_not_depend_on_the_format(csv_trace, tmp_path):
    trace = fs.Trace.open(csv_trace())
    saved = trace.save(tmp_path / "a.frtrace")
    assert fs.Trace.open(saved.path).digest == trace.digest
    assert fs.Trace.open(csv_trace("b.csv", stride=2)).digest != trace.digest


def test_declared_workloads_are_traces():
    trace = fs.Trace.from_workload("seq-8", reads=100, file_bytes=1 << 20)
    assert (trace.reads, len(trace.files), trace.requested_bytes) == (100, 8, 100 * 4096)
    declared = 'name = "x"\npattern = "uniform"\nblock = "4K"'
    first, second = (fs.Trace.from_workload(declared, reads=9, seed=seed) for seed in range(2))
    assert first.digest != second.digest
    with pytest.raises(fs.UsageError, match="seq-8"):
        fs.Trace.from_workload("seq-9", reads=1)


def test_the_same_cell_gives_the_same_outcome(csv_trace):
    trace = fs.Trace.open(csv_trace())
    cell = fs.Cell(**SMALL, seed=3)
    first = fs.simulate(trace, cell)
    assert fs.simulate(trace, cell) == first
    assert first.useful_bytes == 500 * 4096
    assert first.elapsed_ns > 0 and first.throughput_mib_s > 0
    assert sum(count for _, count in first.latency_histogram) == 500
    assert fs.simulate(trace, fs.Cell(**SMALL, policy="none")).elapsed_ns > first.elapsed_ns


@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("read_ahead_kib", [128, 1024])
def test_the_binary_gives_the_same_numbers(csv_trace, tmp_path, stride, read_ahead_kib):
    if not FOREREAD:
        pytest.skip("FOREREAD does not name the binary")
    path = csv_trace(stride=stride)
    sweep = [FOREREAD, "sweep", "sim:nvme,cache=64M", "--workload", f"trace:{path}", "--vary"]
    sweep += [f"read_ahead={read_ahead_kib}K,4K", "--repeats", "2", "--duration", "600s", "--json"]
    environment = {**os.environ, "FOREREAD_STATE_DIR": str(tmp_path / "state")}
    printed = subprocess.run(sweep, env=environment, capture_output=True, text=True).stdout
    cells = json.loads(printed)["cells"]
    [cell] = [cell for cell in cells if cell["settings"]["read_ahead_kib"] == read_ahead_kib]
    cell_here = fs.Cell(device="nvme", cache_bytes=64 << 20, read_ahead_kib=read_ahead_kib)
    outcome = fs.simulate(fs.Trace.open(path), cell_here)
    assert cell["amplification"]["median"] == pytest.approx(outcome.amplification, rel=1e-9)


def test_limits_bound_every_policy(csv_trace):
    trace = fs.Trace.open(csv_trace(stride=3))
    limits = fs.limits(trace, fs.Cell(**SMALL))
    assert limits.lower_bound_ns == max(limits.device_ns, limits.processor_ns)
    assert limits.lower_bound_ns <= limits.clairvoyant_ns
    for policy in ["linux-6.18", "none"]:
        assert fs.simulate(trace, fs.Cell(**SMALL, policy=policy)).elapsed_ns >= (
            limits.lower_bound_ns
        )
    assert fs.limits(trace, fs.Cell(**SMALL), clairvoyant=False).clairvoyant_ns is None


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"policy": "linux-6.19"}, "did you mean"),
        ({"device": "hdd-2009"}, "hdd-2008"),
        ({"filesystem": "fat"}, "xfs, ext4, ext3, plain"),
        ({"cache_bytes": 4096}, "page cache"),
        ({"cache_bytes": -1}, "invalid cell"),
        ({"read_ahead_kib": 3}, "whole pages"),
        ({"pace": "slow"}, "pace"),
        ({"settings": {"cach": "1G"}}, "cach"),
        ({"device": "hdd-2008,seed=3"}, "field of its own"),
    ],
)
def test_a_wrong_cell_is_refused_with_the_words_of_the_binary(values, words):
    with pytest.raises(fs.UsageError, match=words):
        fs.Cell(**values)


def test_files_that_are_no_traces_are_refused(tmp_path):
    with pytest.raises(fs.ForereadError, match="missing.csv"):
        fs.Trace.open(tmp_path / "missing.csv")
    (tmp_path / "odd").write_text("what is this?")
    with pytest.raises(fs.UsageError, match="--format"):
        fs.Trace.open(tmp_path / "odd")
    (tmp_path / "cut.csv").write_text("offset,length\n0,4096\n1")
    with pytest.raises(fs.ForereadError, match="cut.csv:3"):
        fs.Trace.open(tmp_path / "cut.csv")


def test_a_trace_that_does_not_fit_on_the_device_is_refused(tmp_path):
    (tmp_path / "far.csv").write_text(f"offset,length\n{1 << 50},4096\n")
    trace = fs.Trace.open(tmp_path / "far.csv")
    with pytest.raises(fs.UsageError, match="compact"):
        fs.simulate(trace, fs.Cell(**SMALL))
    assert fs.simulate(trace, fs.Cell(**SMALL, compact=True)).useful_bytes == 4096


def test_other_threads_run_during_a_simulation(csv_trace):
    trace = fs.Trace.open(csv_trace(stride=3, reads=200_000))
    cell = fs.Cell(device="hdd-2008", policy="none", compact=True)
    running = threading.Thread(target=fs.simulate, args=(trace, cell))
    running.start()
    steps = 0
    while running.is_alive():
        steps += 1
        time.sleep(0)
    # With the lock held the loop would run twice at most: before and after.
    assert steps > 2


def test_devices_and_policies_are_listed():
    assert "hdd-2008" in fs.devices() and "linux-6.18" in fs.policies()
    assert all(fs.devices().values())


def test_a_long_trace_stays_in_its_file_and_gives_the_same_outcome(tmp_path):
    path = tmp_path / "long.trace"
    reads = (1 << 20) + 20_000
    trace = fs.Trace.from_workload("seq-8", reads=reads, file_bytes=1 << 30, path=path)
    assert (trace.records, trace.reads) == (reads, reads)
    assert trace.requested_bytes == reads * 4096
    table = pa.table(trace)
    loaded = fs.Trace.from_arrow(table.drop_columns(["time_ns"]))
    assert loaded.records == reads
    cell = fs.Cell(device="nvme", cache_bytes=64 << 20)
    outcome = fs.simulate(trace, cell)
    assert fs.simulate(loaded, cell) == outcome
    assert trace.save(tmp_path / "copy.trace").digest == trace.digest
    # Damaged meanwhile: no figures of what was left.
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(fs.ForereadError, match="block .*checksum"):
        fs.simulate(trace, cell)
