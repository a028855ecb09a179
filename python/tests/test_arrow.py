"""Traces and results as Arrow."""

import pytest

import foreread_sim as fs

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")


def test_a_trace_survives_arrow(csv_trace):
    trace = fs.Trace.open(csv_trace(stride=2, reads=70_000))
    table = pa.table(trace)
    assert table.num_rows == 70_000
    assert table["offset_bytes"][1].as_py() == 8192
    again = fs.Trace.from_arrow(table.drop_columns(["time_ns"]))
    assert again.records == trace.records and again.files == trace.files
    cell = fs.Cell(device="nvme")
    assert fs.simulate(again, cell) == fs.simulate(trace, cell)


def test_two_columns_are_a_trace():
    trace = fs.Trace.from_arrow(pa.table({"offset_bytes": [0, 4096], "length_bytes": [4096, 512]}))
    assert (trace.records, trace.requested_bytes, trace.is_timed) == (2, 4608, False)
    assert trace.path is None


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"offset_bytes": [0]}, "length_bytes is missing"),
        ({"offset_bytes": [0, None], "length_bytes": [1, 1]}, "1 values are missing"),
        ({"offset_bytes": [-1], "length_bytes": [1]}, "offset_bytes"),
        ({"offset_bytes": ["x"], "length_bytes": [1]}, "offset_bytes"),
        ({"offset_bytes": [(1 << 63) - 1], "length_bytes": [4096]}, "beyond any file"),
        ({"offset_bytes": [0, 0], "length_bytes": [1, 1], "time_ns": [5, 1]}, "record 2"),
        ({"offset_bytes": [], "length_bytes": []}, "no request"),
    ],
)
def test_a_wrong_table_is_refused(columns, words):
    with pytest.raises(fs.UsageError, match=words):
        fs.Trace.from_arrow(pa.table(columns))


def test_results_are_a_table(csv_trace, tmp_path):
    plan = fs.Plan([csv_trace()], fs.grid(device="nvme", seed=range(3)), shard_seconds=1e-9)
    result = fs.run(plan, tmp_path / "out")
    assert len(result.paths) == 3
    table = pa.table(result.table())
    assert table.num_rows == 3
    by_seed = {row["seed"]: row for row in table.to_pylist()}
    for seed, row in by_seed.items():
        outcome = fs.simulate(fs.Trace.open(csv_trace()), fs.Cell(device="nvme", seed=seed))
        assert row["elapsed_ns"] == outcome.elapsed_ns
        assert row["device_bytes"] == outcome.device_bytes
        assert row["latency_p99_ns"] == outcome.latency_p99_ns
        assert (row["status"], row["error"]) == ("ok", None)
        assert row["simulator_version"] == fs.SIMULATOR_VERSION
