"""Records of studies, as the binary makes them."""

import os
import subprocess

import pyarrow as pa
import pytest

import foreread_sim as fs

FOREREAD = os.environ.get("FOREREAD", "")
pytestmark = pytest.mark.skipif(not FOREREAD, reason="FOREREAD does not name the binary")


@pytest.fixture
def record(tmp_path):
    path = tmp_path / "runs.sqlite"
    for seed in "12":
        words = "sweep sim:nvme --vary read_ahead=4K,128K --workload seq-1 --repeats 2"
        words += f" --duration 50ms --seed {seed} --store {path} --quiet"
        subprocess.run([FOREREAD, *words.split()], check=False, capture_output=True)
    return path


def test_a_record_is_a_table_of_trials(record):
    opened = fs.open_record(record, foreread=FOREREAD)
    assert [run["run"] for run in opened.runs] == [2, 1]
    table = pa.table(opened.table())
    assert sorted(set(table["run"].to_pylist())) == [1, 2]
    assert set(table["read_ahead_kib"].to_pylist()) == {4, 128}
    assert min(table["throughput_mib_s"].to_pylist()) > 0
    assert set(pa.table(opened.table([2]))["run"].to_pylist()) == {2}


def test_a_wrong_record_or_run_has_the_words_of_the_binary(record, tmp_path):
    with pytest.raises(fs.UsageError, match="there is no record"):
        fs.open_record(tmp_path / "none.sqlite", foreread=FOREREAD)
    (tmp_path / "bad.sqlite").write_text("no database")
    with pytest.raises(fs.ForereadError, match="not a record of foreread"):
        fs.open_record(tmp_path / "bad.sqlite", foreread=FOREREAD)
    with pytest.raises(fs.ForereadError, match="cannot run /no/foreread: No such file"):
        fs.open_record(record, foreread="/no/foreread")
    with pytest.raises(fs.UsageError, match="has no run 9"):
        fs.open_record(record, foreread=FOREREAD).table([9])
