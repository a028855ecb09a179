"""Measures simulations of many traces: targets S1 to S6, engines, and libCacheSim.

`scale.py [NAME…]` prints tables in Markdown. Without names it measures everything, which takes a
quiet machine and some minutes.
"""

import argparse
import contextlib
import json
import os
import random
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import foreread_sim as fs
import numpy as np
import pyarrow as pa
from foreread_sim import _engines, _native

# Ray gives its workers a low priority. Beside other work that would decide a comparison.
os.environ.setdefault("RAY_worker_niceness", "0")
PAGE_BYTES = 4096
PAIRS = 7


class Measurement:
    """What is measured, in a directory of its own."""

    def __init__(self, directory: Path, scale: float) -> None:
        self.directory = directory
        self.scale = scale

    def out(self) -> Path:
        """An empty directory for results."""
        return Path(tempfile.mkdtemp(dir=self.directory))

    def trace(self, name: str, pages: np.ndarray) -> fs.Trace:
        """A trace of reads of one page each."""
        columns = {
            "offset_bytes": pa.array(pages.astype(np.uint64) * PAGE_BYTES),
            "length_bytes": pa.array(np.full(len(pages), PAGE_BYTES, dtype=np.uint64)),
        }
        return fs.Trace.from_arrow(pa.table(columns)).save(self.directory / f"{name}.frtrace")

    def mixed(self, name: str, reads: int) -> fs.Trace:
        """Eight streams with one random read in ten."""
        return self.exactly(name, int(reads * self.scale))

    def random(self, name: str, reads: int) -> fs.Trace:
        """Eight random readers."""
        reads = int(reads * self.scale)
        trace = fs.Trace.from_workload("rand-pread", reads=reads, file_bytes=4 << 30)
        return trace.save(self.directory / f"{name}.frtrace")

    def exactly(self, name: str, reads: int) -> fs.Trace:
        """As `mixed`, but as short at any scale."""
        trace = fs.Trace.from_workload("mixed", reads=reads, file_bytes=1 << 30)
        return trace.save(self.directory / f"{name}.frtrace")


@contextlib.contextmanager
def elapsed() -> Iterator[dict[str, float]]:
    """Wall and processor seconds of the block; processor time is that of this process."""
    took: dict[str, float] = {}
    wall, processor = time.perf_counter(), time.process_time()
    yield took
    took["wall"] = time.perf_counter() - wall
    took["processor"] = time.process_time() - processor


def table(head: list[str], rows: list[list[str]]) -> str:
    align = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, align, *rows])


def ratio(values: list[float]) -> str:
    """The median and the range."""
    return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def plan_of(trace: fs.Trace, seeds: int, shard_seconds: float) -> fs.Plan:
    grid = fs.grid(device="hdd-2008", cache_bytes=64 << 20, seed=range(seeds))
    return fs.Plan([trace], grid, shard_seconds=shard_seconds)


def workers(m: Measurement) -> str:
    """S1: two threads ÷ one, with shards of at least 2 s."""
    plan = plan_of(m.random("workers", 1_000_000), 8, 1e-9)
    rows, ratios = [], []
    for _ in range(3):
        took = {}
        for threads in random.sample([1, 2], 2):
            with elapsed() as took[threads]:
                fs.run(plan, m.out(), engine=fs.Local(threads))
        ratios.append(took[1]["wall"] / took[2]["wall"])
        # Beside other work two threads also get more of the processors; this does not change.
        shared = took[2]["processor"] / took[1]["processor"]
        numbers = [took[1]["wall"], took[2]["wall"], took[1]["processor"] / 8, shared, ratios[-1]]
        rows.append([f"{number:.2f}" for number in numbers])
    head = [
        "one thread, s",
        "two threads, s",
        "processor s in a shard",
        "processor time, two threads ÷ one",
        "speedup",
    ]
    return f"Speedup {ratio(ratios)}; target 1.9.\n\n" + table(head, rows)


def ray_against_threads(m: Measurement) -> str:
    """The same plan by Ray and by threads."""
    import ray

    plan = plan_of(m.random("ray", 200_000), 24, 1e-9)
    with elapsed() as start:
        ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False, logging_level="ERROR")
    # Workers start with the first tasks.
    fs.run(plan_of(m.exactly("warm", 100), 8, 1e-9), m.out(), engine=fs.Ray())
    rows, ratios, digests = [], [], set()
    for _ in range(5):
        took = {}
        engines = {"threads": fs.Local(2), "ray": fs.Ray()}
        for name in random.sample(list(engines), 2):
            with elapsed() as took[name]:
                digests.add(fs.run(plan, m.out(), engine=engines[name]).digest)
        ratios.append(took["threads"]["wall"] / took["ray"]["wall"])
        rows.append(
            [f"{took['threads']['wall']:.2f}", f"{took['ray']['wall']:.2f}", f"{ratios[-1]:.2f}"]
        )
    ray.shutdown()
    text = (
        f"Threads ÷ Ray {ratio(ratios)}; target 0.9. Starting Ray took {start['wall']:.1f} s, which"
    )
    text += f" is not included. Different digests of the results: {len(digests)}.\n\n"
    return text + table(["two threads, s", "Ray with two processors, s", "threads ÷ Ray"], rows)


def driver(m: Measurement) -> str:
    """S2: shards that only sleep, through the engine Ray and through threads."""
    import ray

    shards = int(4000 * m.scale)
    plan = plan_of(m.exactly("driver", 20), shards, 1e-12)
    planned = plan.shards(m.out())[0]

    def sleeping(json: str, name: str, out: str) -> None:
        time.sleep(0.001)

    ray.init(num_cpus=4, log_to_driver=False, include_dashboard=False, logging_level="ERROR")
    real, _engines._ray_task = _engines._ray_task, sleeping
    try:
        for _ in fs.Ray().run(planned[:100], m.directory):
            pass
        with elapsed() as by_ray:
            done = sum(1 for _ in fs.Ray().run(planned, m.directory))
    finally:
        _engines._ray_task = real
        ray.shutdown()
    out = m.out()
    with elapsed() as by_threads:
        for _ in fs.Local(2).run(planned, out):
            pass
    rows = [
        ["Ray, shards that sleep", str(done), *rate(done, by_ray)],
        ["threads, shards of one simulation of 20 reads", str(done), *rate(done, by_threads)],
    ]
    return "Target: 500 shards/s.\n\n" + table(
        ["engine", "shards", "s", "shards/s", "ms of the driver's processor time per shard"], rows
    )


def rate(count: int, took: dict[str, float]) -> list[str]:
    per_shard = took["processor"] / count * 1e3
    return [f"{took['wall']:.2f}", f"{count / took['wall']:.0f}", f"{per_shard:.2f}"]


def planning(m: Measurement) -> str:
    """S3: planning cells, and resuming with results."""
    cells, parts = int(100_000 * m.scale), 10
    trace = m.exactly("planning", 20)
    grid = fs.grid(
        device=["hdd-2008", "nvme"],
        policy=["linux-6.18", "none"],
        read_ahead_kib=[32, 128, 512, 1024, 4096],
        seed=range(cells // 20),
    )
    with elapsed() as first:
        count = fs.Plan([trace], grid).shards(m.out())[1]
    # Results that nothing had to simulate: what is resumed does not depend on their numbers.
    out = m.out()
    many = [m.exactly(f"planning-{at}", 21 + at) for at in range(parts)]
    whole = fs.Plan(many, grid, shard_seconds=0.001)
    shards, _, _ = whole.shards(out)
    for shard in shards:
        _native.poison_shard(shard.json, out, "not simulated")
    with elapsed() as again:
        left, all_cells, finished = whole.shards(out)
    assert not left and finished == all_cells
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = sum(path.stat().st_size for path in out.glob("part-*")) / finished
    rows = [
        [
            f"{count:,} cells planned",
            f"{first['wall']:.2f}",
            f"{first['processor']:.2f}",
            "5 s for 10⁵",
        ],
        [
            f"{finished:,} results in {len(shards):,} files resumed",
            f"{again['wall']:.2f}",
            f"{again['processor']:.2f}",
            "10 s for 10⁶",
        ],
    ]
    text = (
        f"Peak memory of the driver {peak:.0f} MiB; {size:.0f} bytes per row without figures.\n\n"
    )
    return text + table(["", "s", "processor s", "target"], rows)


def memory(m: Measurement) -> str:
    """S5: the peak memory of a worker, by the number of records."""
    rows = []
    for reads in [int(n * m.scale) for n in (1_000_000, 10_000_000, 100_000_000)]:
        name = m.directory / f"memory-{reads}.frtrace"
        made = measured(MAKE_LARGE, str(name), str(reads))
        run = measured(RUN_LARGE, str(name), str(m.out()))
        size = name.stat().st_size / reads
        name.unlink()
        numbers = [f"{number:.0f}" for number in [made["mib"], run["mib"], run["processor_s"]]]
        rows.append([f"{reads:,}", f"{size:.1f}", *numbers])
    head = [
        "records",
        "bytes per record on disk",
        "peak memory of writing the trace, MiB",
        "peak memory of the worker, MiB",
        "processor s of the worker",
    ]
    return (
        "Target: 300 MiB for 10⁹ records, in addition to the simulated cache of 64 MiB. A trace of "
        "more than 1,048,576 records is read block by block.\n\n" + table(head, rows)
    )


def measured(script: str, *words: str) -> dict[str, float]:
    """Peak memory and processor time of a process of its own."""
    run = subprocess.run(
        [sys.executable, "-c", script + PRINT_USE, *words],
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, float] = json.loads(run.stdout)
    return found


MAKE_LARGE = """
import sys
import foreread_sim as fs
text = 'name = "x"\\npattern = "mixed"\\nrandom_fraction = 0.1\\nblock = "4K"\\nreaders = 8'
reads = int(sys.argv[2])
# Each of eight readers reads its own file once, in blocks of 4 KiB: twice as many as are wanted.
file_bytes = (reads // 4) << 12
trace = fs.Trace.from_workload(text, reads=reads, file_bytes=file_bytes, path=sys.argv[1])
assert len(trace) == reads, len(trace)
"""

RUN_LARGE = """
import sys
import foreread_sim as fs
cell = fs.Cell(device="nvme", cache_bytes=64 << 20, settings={"capacity": "16T"})
plan = fs.Plan([sys.argv[1]], cells=[cell])
result = fs.run(plan, sys.argv[2], engine=fs.Local(1))
assert result.cells == {"ok": 1}, result
"""

PRINT_USE = """
import json, resource
use = resource.getrusage(resource.RUSAGE_SELF)
processor = use.ru_utime + use.ru_stime
print(json.dumps({"mib": use.ru_maxrss / 1024, "processor_s": processor}))
"""


def shards(m: Measurement) -> str:
    """S6: sixteen cells in a shard ÷ the simulations alone, in processor time."""
    trace = m.random("shards", 100_000)
    cells = [fs.Cell(device="hdd-2008", cache_bytes=64 << 20, seed=seed) for seed in range(16)]
    plan = fs.Plan([trace], cells=cells, shard_seconds=1e6)
    ratios = []
    for _ in range(PAIRS):
        out, took = m.out(), {}
        [shard] = plan.shards(out)[0]

        def alone() -> None:
            for cell in cells:
                fs.simulate(trace, cell)

        runs: dict[str, Callable[[], object]] = {
            "shard": lambda shard=shard, out=out: _native.run_shard(shard.json, out),
            "alone": alone,
        }
        for name in random.sample(list(runs), 2):
            with elapsed() as took[name]:
                runs[name]()
        ratios.append(took["shard"]["processor"] / took["alone"]["processor"])
    return (
        f"16 cells of one trace of {len(trace):,} reads, as a shard (decoding and publishing"
        f" included) ÷ `simulate` of each, processor time, {PAIRS} pairs: {ratio(ratios)};"
        " target 1.05."
    )


def overhead(m: Measurement) -> str:
    """`fs.simulate` ÷ the simulation that a shard times inside Rust."""
    trace = m.random("overhead", 150_000)
    ratios = []
    for seed in range(PAIRS):
        cell = fs.Cell(device="hdd-2008", cache_bytes=64 << 20, seed=seed)
        out = m.out()
        [shard] = fs.Plan([trace], cells=[cell]).shards(out)[0]
        took = {}
        for name in random.sample(["rust", "python"], 2):
            if name == "python":
                fs.simulate(trace, cell)
                with elapsed() as took["python"]:
                    fs.simulate(trace, cell)
            else:
                took["rust"] = {"wall": _native.run_shard(shard.json, out)[3]}
        ratios.append(took["python"]["wall"] / took["rust"]["wall"])
    return f"`simulate` ÷ the same in Rust, {PAIRS} pairs: {ratio(ratios)}; target 1.05."


def libcachesim(m: Measurement) -> str:
    """LRU and the optimum of Belady, the same references in both."""
    import libcachesim as lcs

    rng = np.random.default_rng(1)
    count = int(1_000_000 * m.scale)
    loop = np.tile(np.arange(count // 20), 20)
    streams = (np.arange(count) % 8) * (1 << 22) + np.arange(count) // 8
    references = {
        "Zipf 0.9 over 200,000 pages": zipf(rng, 200_000, count),
        "uniform over 100,000 pages": rng.integers(0, 100_000, count),
        "loop of 50,000 pages": loop,
        "eight sequential streams": streams,
    }
    rows = []
    for number, (name, pages) in enumerate(references.items()):
        distinct = len(np.unique(pages))
        capacity = distinct // 4
        trace = m.trace(f"peer-{number}", pages)
        path = m.directory / f"peer-{number}.oracleGeneral"
        write_oracle_general(path, pages)
        cell = fs.Cell(
            device="zero", policy="none", filesystem="plain", compact=False,
            cache_bytes=capacity * PAGE_BYTES, settings={"replacement": "lru"},
        )  # fmt: skip
        ours = theirs = None
        speed = []
        for _ in range(PAIRS):
            took = {}
            for program in random.sample(["ours", "theirs"], 2):
                if program == "ours":
                    with elapsed() as took["ours"]:
                        ours = fs.simulate(trace, cell)
                else:
                    reader = lcs.TraceReader(str(path), lcs.TraceType.ORACLE_GENERAL_TRACE)
                    cache = lcs.LRU(capacity * PAGE_BYTES)
                    with elapsed() as took["theirs"]:
                        theirs = cache.process_trace(reader)
            speed.append(took["theirs"]["processor"] / took["ours"]["processor"])
        reader = lcs.TraceReader(str(path), lcs.TraceType.ORACLE_GENERAL_TRACE)
        belady = round(lcs.Belady(capacity * PAGE_BYTES).process_trace(reader)[0] * len(pages))
        fewest = fs.limits(trace, cell, clairvoyant=False).fetched_pages
        rows.append(
            [
                name,
                f"{len(pages):,}",
                f"{capacity:,}",
                f"{ours.missed_pages:,}",
                f"{round(theirs[0] * len(pages)):,}",
                f"{fewest:,}",
                f"{belady:,}",
                ratio(speed),
            ]
        )
    head = [
        "references", "count", "cache, pages", "misses LRU", "libCacheSim LRU", "fewest fetches",
        "libCacheSim Belady", "libCacheSim's processor time ÷ ours",
    ]  # fmt: skip
    return table(head, rows)


def zipf(rng: np.random.Generator, pages: int, count: int) -> np.ndarray:
    weights = 1 / np.arange(1, pages + 1) ** 0.9
    return rng.permutation(pages)[rng.choice(pages, count, p=weights / weights.sum())]


def write_oracle_general(path: Path, pages: np.ndarray) -> None:
    """libCacheSim's records: time, object, size, and when the object comes next (-1: never)."""
    record = np.dtype([("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")])
    assert record.itemsize == struct.calcsize("<IQIq")
    records = np.zeros(len(pages), dtype=record)
    records["time"] = np.arange(len(pages)) // 1000
    records["id"], records["size"], records["next"] = pages, PAGE_BYTES, -1
    order = np.argsort(pages, kind="stable")
    same = pages[order][1:] == pages[order][:-1]
    records["next"][order[:-1][same]] = order[1:][same]
    records.tofile(path)


SECTIONS = {
    "workers": ("Two workers (S1)", workers),
    "ray": ("Ray against threads", ray_against_threads),
    "driver": ("Shards per second of a driver (S2)", driver),
    "planning": ("Planning and resuming (S3)", planning),
    "memory": ("Memory of a worker (S5)", memory),
    "shards": ("Cells in a shard (S6)", shards),
    "overhead": ("Python against Rust", overhead),
    "libcachesim": ("libCacheSim", libcachesim),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SECTIONS))
    parser.add_argument("--scale", type=float, default=1.0, help="size of all traces, relative")
    arguments = parser.parse_args()
    for name in arguments.names or SECTIONS:
        title, measure = SECTIONS[name]
        with tempfile.TemporaryDirectory() as directory:
            print(f"### {title}\n\n{measure(Measurement(Path(directory), arguments.scale))}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
