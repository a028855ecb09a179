"""Engines: where shards run. All of them give the same results."""

import dataclasses
import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ._errors import ForereadError
from ._store import open_store

if TYPE_CHECKING:
    from ._plan import Shard

MAX_WORKER_DEATHS = 3
RAY_BATCH = 100
"""Most results of Ray that are taken at once."""
RAY_BATCH_SECONDS = 0.1
"""Longest time that a result waits for others."""


@dataclasses.dataclass(frozen=True)
class ShardFailure:
    """Why a shard has no results."""

    reason: str
    is_fatal: bool = False
    """Whether its workers died, so that trying again is pointless."""


class Engine(Protocol):
    """Runs shards in any order, and yields each with its failure, or `None` if it is published."""

    def run(
        self, shards: Sequence["Shard"], out: Path | str
    ) -> Iterator[tuple["Shard", ShardFailure | None]]: ...


@dataclasses.dataclass(frozen=True)
class Local:
    """Threads of this process: they run in parallel, since simulations need no interpreter."""

    threads: int | None = None
    """Number of threads; `None` for one per processor that this process may use."""

    def run(
        self, shards: Sequence["Shard"], out: Path | str
    ) -> Iterator[tuple["Shard", ShardFailure | None]]:
        threads = self.threads or len(os.sched_getaffinity(0))
        store = open_store(out)
        waiting = deque(shards)
        running: dict[Future[Any], Shard] = {}
        with ThreadPoolExecutor(threads) as pool:
            # Only as many are submitted as can run: an interrupt ends the run with these.
            while waiting or running:
                while waiting and len(running) < threads:
                    shard = waiting.popleft()
                    running[pool.submit(store.run, shard.json, shard.name)] = shard
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield running.pop(future), _failure(future.exception())


def _failure(error: BaseException | None) -> ShardFailure | None:
    if error is None:
        return None
    if isinstance(error, ForereadError):
        return ShardFailure(str(error))
    raise error


@dataclasses.dataclass(frozen=True)
class Ray:
    """Tasks of a Ray cluster. `out` must be an object store, or a directory that all nodes share.

    Uses the running cluster, or starts one on this machine. A task whose worker dies is started
    again; a shard that ends three workers is recorded with the status `poisoned`.
    """

    address: str | None = None
    """Address of the cluster, as for `ray.init`."""
    max_in_flight: int = 1000
    """Most tasks that are submitted at a time."""

    def run(
        self, shards: Sequence["Shard"], out: Path | str
    ) -> Iterator[tuple["Shard", ShardFailure | None]]:
        try:
            import ray
        except ImportError as error:
            message = "engine Ray: the package ray is not installed; pip install foreread-sim[ray]"
            raise ForereadError(message) from error
        if not ray.is_initialized():
            ray.init(address=self.address, log_to_driver=False, include_dashboard=False)
        task = ray.remote(num_cpus=1, max_retries=MAX_WORKER_DEATHS - 1)(_ray_task)
        tasks: dict[int, Any] = {}
        waiting = deque(shards)
        running: dict[Any, Shard] = {}
        while waiting or running:
            while waiting and len(running) < self.max_in_flight:
                shard = waiting.popleft()
                memory = shard.estimated_bytes
                if memory not in tasks:
                    tasks[memory] = task.options(memory=memory)
                running[tasks[memory].remote(shard.json, shard.name, str(out))] = shard
            # Several at a time: a pass over all tasks for each would limit the driver.
            count = min(len(running), RAY_BATCH)
            done, _ = ray.wait(list(running), num_returns=count, timeout=RAY_BATCH_SECONDS)
            for reference, failure in zip(done, _ray_results(done)):
                yield running.pop(reference), failure


def _ray_results(done: list[Any]) -> list[ShardFailure | None]:
    import ray

    try:
        return [ShardFailure(error) if error else None for error in ray.get(done)]
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError):
        if len(done) == 1:
            reason = f"its worker died {MAX_WORKER_DEATHS} times"
            return [ShardFailure(reason, is_fatal=True)]
        # One of them: find out which.
        return [failure for reference in done for failure in _ray_results([reference])]


def _ray_task(json: str, name: str, out: str) -> str | None:
    """Runs in a worker. Errors go back as text: a message is smaller than a pickled traceback."""
    # A task that was retried although it had published needs not run again.
    store = open_store(out)
    try:
        if not store.is_finished(json, name):
            store.run(json, name)
    except ForereadError as error:
        return str(error)
    return None
