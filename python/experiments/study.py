"""The study: traces × devices × policies × windows × cache sizes, and what follows from it.

`study.py run DIR` makes the traces in DIR and simulates what DIR/results lacks, also after an
interruption. `study.py tables DIR` prints the tables in Markdown; `study.py plots DIR OUT` draws;
`study.py all DIR` does all three, and draws into docs/book.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import foreread_sim as fs

import study_tables
import study_traces
from study_grid import DEFAULT_KIB, DEVICES, POLICIES, WINDOWS_KIB, WITHOUT_WINDOW, cache_sizes


def cells(trace: study_traces.StudyTrace) -> list[fs.Cell]:
    found = []
    for device in DEVICES:
        for cache in cache_sizes(trace.distinct_bytes):
            for kib in WINDOWS_KIB:
                for name, policy in POLICIES.items():
                    if name in WITHOUT_WINDOW and kib != DEFAULT_KIB:
                        continue
                    cell = fs.Cell(
                        policy=policy(kib),
                        device=device,
                        cache_bytes=cache,
                        read_ahead_kib=kib,
                        compact=trace.compact,
                    )
                    found.append(cell)
    return found


def simulate(directory: Path, foreread: str, public: Path | None, threads: int | None) -> None:
    traces = study_traces.make(directory / "traces", foreread, public)
    print(f"{len(traces)} traces", file=sys.stderr)
    out = directory / "results"
    shards, all_cells, finished = [], 0, 0
    for trace in traces:
        plan = fs.Plan([trace.path], cells=cells(trace), shard_seconds=5)
        more, planned, done = plan.shards(out)
        shards += more
        all_cells, finished = all_cells + planned, finished + done
    print(f"{finished} of {all_cells} cells are finished, {len(shards)} shards", file=sys.stderr)
    # Names are hashes, so this order mixes traces and devices: an interrupted study has all kinds.
    order = sorted(shards, key=lambda shard: shard.name)
    started, processor = time.monotonic(), time.process_time()
    simulated, printed = 0, started
    for shard, failure in fs.Local(threads).run(order, out):
        if failure is not None:
            print(f"shard {shard.name}: {failure.reason}", file=sys.stderr)
            continue
        simulated += shard.cells
        now = time.monotonic()
        if now - printed > 15 or simulated + finished == all_cells:
            printed = now
            rate = simulated / (now - started)
            used = (time.process_time() - processor) / simulated
            print(
                f"{finished + simulated} of {all_cells} cells, {rate:.0f}/s,"
                f" {used * 1e3:.2f} ms of processor time each,"
                f" {(all_cells - finished - simulated) / rate / 60:.0f} min left",
                file=sys.stderr,
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("run", help="make the traces and simulate what is missing")
    verbs.add_parser("tables", help="print the tables in Markdown")
    verbs.add_parser("plots", help="draw the plots as SVG").add_argument("--out", type=Path)
    verbs.add_parser("all", help="run, print the tables and draw the plots")
    for verb in verbs.choices.values():
        verb.add_argument("directory", type=Path)
        verb.set_defaults(out=Path("docs/book"))
    for verb in [verbs.choices["run"], verbs.choices["all"]]:
        verb.add_argument("--foreread", default=os.environ.get("FOREREAD", "foreread"))
        verb.add_argument("--public", type=Path, default=os.environ.get("FOREREAD_TRACES"))
        verb.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    directory = arguments.directory.absolute()
    if arguments.verb in ("run", "all"):
        public = Path(arguments.public) if arguments.public else None
        simulate(directory, arguments.foreread, public, arguments.threads)
    if arguments.verb in ("tables", "all"):
        print(study_tables.markdown(directory))
    if arguments.verb in ("plots", "all"):
        study_tables.draw(directory, arguments.out)


if __name__ == "__main__":
    main()
