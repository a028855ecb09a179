"""Results in an object store: a real S3 server of moto on this machine."""

import os
import shutil
import socket
import subprocess
import sys
import time

import pytest
from test_plan import plan

import foreread_sim as fs

pytest.importorskip("moto", reason="moto is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")


@pytest.fixture(scope="module")
def server():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def bucket(server, tmp_path, monkeypatch):
    from pyarrow import fs as arrow

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    options = f"scheme=http&region=us-east-1&endpoint_override={server}"
    name = tmp_path.name.replace("_", "-").lower()
    store = arrow.S3FileSystem(
        endpoint_override=server, scheme="http", region="us-east-1", allow_bucket_creation=True
    )
    store.create_dir(name)
    return f"s3://{name}/study?{options}", store, f"{name}/study"


def test_a_bucket_gives_the_results_of_a_directory(bucket, csv_trace, tmp_path):
    url, store, prefix = bucket
    experiment = plan(csv_trace)
    here = fs.run(experiment, tmp_path / "here")
    there = fs.run(experiment, url)
    assert (there.digest, there.cells) == (here.digest, here.cells)
    assert experiment.shards(url)[2] == 24
    # A machine without the mirror downloads it; what the bucket lost is simulated again.
    shutil.rmtree(os.environ["XDG_CACHE_HOME"])
    assert fs.Result.open(url).digest == here.digest
    store.delete_file(f"{prefix}/{there.paths[0].name}")
    assert experiment.shards(url)[2] == 23
    assert fs.run(experiment, url).digest == here.digest


DRIVER = """
import os, signal, sys
import foreread_sim as fs

class Killed(fs.Local):
    def run(self, shards, out):
        for number, result in enumerate(super().run(shards, out)):
            if number == 9:
                os.kill(os.getpid(), signal.SIGKILL)
            yield result

plan = fs.Plan([sys.argv[2]], fs.grid(device="hdd-2008", seed=range(20)), shard_seconds=1e-9)
fs.run(plan, sys.argv[1], engine=Killed(threads=2))
"""


def test_a_killed_driver_leaves_whole_objects(bucket, csv_trace, tmp_path):
    url, store, prefix = bucket
    trace = csv_trace()
    subprocess.run([sys.executable, "-c", DRIVER, url, str(trace)])
    experiment = fs.Plan([trace], fs.grid(device="hdd-2008", seed=range(20)), shard_seconds=1e-9)
    assert 10 <= experiment.shards(url)[2] < 20
    written = modified(store, prefix)
    whole = fs.run(experiment, tmp_path / "whole")
    assert fs.run(experiment, url).digest == whole.digest
    again = modified(store, prefix)
    assert {name: again[name] for name in written} == written, "a finished shard ran again"


def modified(store, prefix):
    from pyarrow import fs as arrow

    return {info.path: info.mtime_ns for info in store.get_file_info(arrow.FileSelector(prefix))}


def test_ray_writes_to_a_bucket(bucket, csv_trace, tmp_path):
    ray = pytest.importorskip("ray", reason="ray is not installed")
    url, _, _ = bucket
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False, logging_level="ERROR")
    try:
        by_ray = fs.run(plan(csv_trace), url, engine=fs.Ray())
    finally:
        ray.shutdown()
    assert by_ray.digest == fs.run(plan(csv_trace), tmp_path / "here").digest


def test_wrong_addresses_and_credentials_are_named(server, csv_trace, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    experiment = plan(csv_trace)
    with pytest.raises(fs.UsageError, match="gopher://x"):
        fs.run(experiment, "gopher://x/y")
    url = f"s3://nobucket/x?scheme=http&region=us-east-1&endpoint_override={server}"
    with pytest.raises(fs.ForereadError, match="s3://nobucket/x") as error:
        fs.run(experiment, f"s3://user:secret@{url.removeprefix('s3://')}")
    assert "secret" not in str(error.value)
    with pytest.raises(fs.UsageError, match="needs a directory"):
        fs.write_manifest(experiment, url, "slurm")
