"""Kills and a full disk: the results are those of an undisturbed process, nothing runs twice."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import foreread_sim as fs

SHARDS = 40


@pytest.fixture
def experiment(csv_trace):
    """Shards of about 0.1 s each, so that kills meet them at work."""
    grid = fs.grid(device="hdd-2008", policy="none", cache_bytes=64 << 20, seed=range(SHARDS))
    return fs.Plan([csv_trace(stride=3, reads=20_000)], grid, shard_seconds=1e-9)


class Watched:
    """Notes each result file when it appears, to find those that are written again."""

    def __init__(self, out: Path) -> None:
        self._out, self._stop = out, threading.Event()
        self.first: dict[Path, tuple[int, int]] = {}
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> "Watched":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.02):
            for path in self._out.glob("part-*.parquet"):
                self.first.setdefault(path, identity(path))

    def wait_for(self, count: int) -> None:
        limit = time.monotonic() + 120
        while len(self.first) < count and time.monotonic() < limit:
            time.sleep(0.02)
        assert len(self.first) >= count, "the run does not advance"

    def unchanged(self) -> bool:
        return all(identity(path) == first for path, first in self.first.items())


def identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


def in_background(plan: fs.Plan, out: Path, engine: fs.Engine) -> tuple[threading.Thread, list]:
    results: list[fs.Result] = []
    thread = threading.Thread(target=lambda: results.append(fs.run(plan, out, engine=engine)))
    thread.start()
    return thread, results


def check(results: list, watched: Watched, undisturbed: fs.Result) -> None:
    [result] = results
    assert not result.failed
    assert result.digest == undisturbed.digest
    assert result.cells == {"ok": SHARDS} and len(result.paths) == SHARDS
    assert watched.unchanged(), "a finished shard ran again"


def test_killed_workers_of_ray(experiment, tmp_path):
    ray = pytest.importorskip("ray", reason="ray is not installed")
    undisturbed = fs.run(experiment, tmp_path / "whole", engine=fs.Local(threads=1))
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False, logging_level="ERROR")
    try:
        killed = 0
        out = tmp_path / "killed"
        with Watched(out) as watched:
            thread, results = in_background(experiment, out, fs.Ray())
            for published in [5, 15, 25]:
                watched.wait_for(published)
                # One of two: a shard that is killed three times would be set aside.
                for worker in workers_of(os.getpid())[:1]:
                    os.kill(worker, signal.SIGKILL)
                    killed += 1
            thread.join(timeout=180)
        assert killed > 0
        check(results, watched, undisturbed)
    finally:
        ray.shutdown()


def workers_of(driver: int) -> list[int]:
    """Ray's workers below this process that run a shard at the moment."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True)
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
    parents = {int(pid): int(parent) for pid, parent, *_ in rows}

    def is_ours(pid: int) -> bool:
        while pid > 1:
            if pid == driver:
                return True
            pid = parents.get(pid, 0)
        return False

    return [int(row[0]) for row in rows if "ray::_ray_task" in row[-1] and is_ours(int(row[0]))]


def test_a_killed_node_of_ray(experiment, tmp_path):
    ray = pytest.importorskip("ray", reason="ray is not installed")
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    undisturbed = fs.run(experiment, tmp_path / "whole", engine=fs.Local(threads=1))
    cluster = cluster_utils.Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    try:
        node = cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        out = tmp_path / "killed"
        with Watched(out) as watched:
            thread, results = in_background(experiment, out, fs.Ray())
            watched.wait_for(8)
            cluster.remove_node(node, allow_graceful=False)
            thread.join(timeout=240)
        check(results, watched, undisturbed)
    finally:
        ray.shutdown()
        cluster.shutdown()


DRIVER = """
import sys
import foreread_sim as fs
grid = fs.grid(device="hdd-2008", policy="none", cache_bytes=64 << 20, seed=range(int(sys.argv[3])))
plan = fs.Plan([sys.argv[1]], grid, shard_seconds=1e-9)
fs.run(plan, sys.argv[2])
"""


def test_a_killed_driver(experiment, tmp_path):
    undisturbed = fs.run(experiment, tmp_path / "whole", engine=fs.Local(threads=1))
    out = tmp_path / "killed"
    trace = str(experiment.traces[0])
    command = [sys.executable, "-c", DRIVER, trace, str(out), str(SHARDS)]
    with Watched(out) as watched:
        for published in [3, 12]:
            driver = subprocess.Popen(command)
            watched.wait_for(published)
            driver.kill()
            driver.wait()
        finished = len(list(out.glob("part-*.parquet")))
        assert experiment.shards(out)[2] == finished < SHARDS
        result = fs.run(experiment, out)
    check([result], watched, undisturbed)


FULL = """
import subprocess, sys
from pathlib import Path
import foreread_sim as fs

trace, out, shards = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
out.mkdir()
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(out)], check=True)
grid = fs.grid(device="hdd-2008", policy="none", cache_bytes=64 << 20, seed=range(shards))
plan = fs.Plan([trace], grid, shard_seconds=1e-9)
first = fs.run(plan, out)
assert first.failed and first.cells, first
assert all("No space left" in reason for reason in first.failed.values()), first.failed
kept = {path: path.stat().st_mtime_ns for path in first.paths}
subprocess.run(["mount", "-o", "remount,size=64m", str(out)], check=True)
second = fs.run(plan, out)
assert not second.failed, second.failed
assert all(path.stat().st_mtime_ns == then for path, then in kept.items())
assert sorted(path.name for path in out.iterdir()) == sorted(path.name for path in second.paths)
print(second.digest)
"""


def test_a_full_disk(experiment, tmp_path):
    # Root mounts directly: a namespace would keep the mounts of other tests busy.
    space = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    if space and (
        not shutil.which("unshare")
        or subprocess.run([*space, "true"], capture_output=True).returncode
    ):
        pytest.skip("this system permits no mount namespace")
    undisturbed = fs.run(experiment, tmp_path / "whole", engine=fs.Local(threads=1))
    full = tmp_path / "full"
    arguments = [str(experiment.traces[0]), str(full), str(SHARDS)]
    try:
        filled = subprocess.run(
            [*space, sys.executable, "-c", FULL, *arguments], capture_output=True, text=True
        )
    finally:
        if not space:
            subprocess.run(["umount", str(full)])
    assert filled.returncode == 0, filled.stderr
    assert filled.stdout.strip() == undisturbed.digest
