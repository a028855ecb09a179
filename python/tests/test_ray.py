"""Ray: the same results as threads, also when workers die."""

import os
import signal

import pytest
from test_plan import plan

import foreread_sim as fs

ray = pytest.importorskip("ray", reason="ray is not installed")


@pytest.fixture(scope="module")
def cluster():
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False, logging_level="ERROR")
    yield
    ray.shutdown()


def test_ray_gives_the_results_of_threads(cluster, csv_trace, tmp_path):
    local = fs.run(plan(csv_trace), tmp_path / "local")
    by_ray = fs.run(plan(csv_trace), tmp_path / "ray", engine=fs.Ray())
    assert by_ray.digest == local.digest
    assert sorted(path.name for path in by_ray.paths) == sorted(path.name for path in local.paths)


def test_a_shard_that_kills_its_workers_is_set_aside(cluster, csv_trace, tmp_path, monkeypatch):
    shards, *_ = plan(csv_trace).shards(tmp_path / "out")
    fatal = shards[5].json

    def task(json, name, out):
        if json == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        fs._native.run_shard(json, out)

    monkeypatch.setattr(fs._engines, "_ray_task", task)
    result = fs.run(plan(csv_trace), tmp_path / "out", engine=fs.Ray())
    assert result.cells == {"ok": 23, "poisoned": 1}
    assert fs.run(plan(csv_trace), tmp_path / "out") == result
