"""Tables and plots of the study's results."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import foreread_sim as fs
import numpy as np
import pyarrow as pa
import pyarrow.compute

from study_grid import (
    CACHE_LEVELS,
    DEFAULT_KIB,
    DEVICES,
    KINDS,
    POLICIES,
    TODAY,
    WINDOWS_KIB,
    WITH_ADVICE,
    WITHOUT_WINDOW,
)
from svg import curves, line_panels

NAMES = list(POLICIES)
RIVALS = [at for at, name in enumerate(NAMES) if name not in WITH_ADVICE]
DEFAULT = WINDOWS_KIB.index(DEFAULT_KIB)
ORIGINS = ["public", "declared", "recorded"]
# Traces that are read from the end: few, and so slow that they weigh on every mean.
BACKWARD = ["backward", "tac"]
# What is as fast as the best: less than the difference between two runs on real storage.
SAME_RATIO = 1.02


@dataclasses.dataclass
class Study:
    """Results as arrays over trace, device, cache, policy and window."""

    traces: list[str]
    elapsed: np.ndarray
    """Nanoseconds; NaN if it was not simulated."""
    amplification: np.ndarray
    """Bytes read from the device ÷ bytes that the readers got."""
    rows: int
    simulator_version: str

    @property
    def complete(self) -> np.ndarray:
        """Whether a situation (trace, device, cache) has all of its cells."""
        return ~np.isnan(self.elapsed).any(axis=(3, 4))

    @property
    def slowdown(self) -> np.ndarray:
        """Time ÷ the shortest time of any policy without advice and any window, per situation."""
        rivals = self.elapsed[:, :, :, RIVALS, :]
        best = np.where(np.isnan(rivals), np.inf, rivals).min(axis=(3, 4))
        ratio = self.elapsed / best[..., None, None]
        ratio[~self.complete] = np.nan
        return ratio


def load(directory: Path) -> Study:
    """Reads the results of a study, and refuses those of several simulators."""
    table = pa.table(fs.Result.open(directory / "results").table())
    table = table.filter(pa.compute.equal(table["status"], "ok"))
    versions = set(table["simulator_version"].to_pylist())
    if len(versions) != 1:
        raise SystemExit(f"{directory} has results of {len(versions)} simulators: {versions}")
    column = {name: table[name].to_pylist() for name in ["trace", "device", "policy"]}
    numbers = {
        name: table[name].to_numpy()
        for name in ["cache_bytes", "read_ahead_kib", "elapsed_ns", "device_bytes", "useful_bytes"]
    }
    traces = sorted({name.removesuffix(".frtrace") for name in column["trace"]})
    caches: dict[str, set[int]] = {}
    for name, size in zip(column["trace"], numbers["cache_bytes"], strict=True):
        caches.setdefault(name, set()).add(int(size))
    level = {
        (name, size): at for name, sizes in caches.items() for at, size in enumerate(sorted(sizes))
    }
    cell = {
        (policy(kib), kib): (NAMES.index(name), at)
        for name, policy in POLICIES.items()
        for at, kib in enumerate(WINDOWS_KIB)
    }
    shape = (len(traces), len(DEVICES), CACHE_LEVELS, len(NAMES), len(WINDOWS_KIB))
    elapsed, amplification = np.full(shape, np.nan), np.full(shape, np.nan)
    position = {name + ".frtrace": at for at, name in enumerate(traces)}
    for row in range(table.num_rows):
        trace, kib = column["trace"][row], int(numbers["read_ahead_kib"][row])
        where = cell.get((column["policy"][row], kib))
        if where is None or column["device"][row] not in DEVICES:
            continue
        size = level[trace, int(numbers["cache_bytes"][row])]
        at = (position[trace], DEVICES.index(column["device"][row]), size, *where)
        elapsed[at] = numbers["elapsed_ns"][row]
        amplification[at] = numbers["device_bytes"][row] / max(1, numbers["useful_bytes"][row])
    for name in WITHOUT_WINDOW:
        at = NAMES.index(name)
        elapsed[..., at, :] = elapsed[..., at, DEFAULT, None]
        amplification[..., at, :] = amplification[..., at, DEFAULT, None]
    return Study(traces, elapsed, amplification, table.num_rows, versions.pop())


def mean(slowdown: np.ndarray) -> float:
    """The geometric mean of the cells that there are."""
    values = slowdown[~np.isnan(slowdown)]
    return float(np.exp(np.log(values).mean())) if values.size else float("nan")


def best_window(slowdown: np.ndarray) -> int:
    """The window (last axis) with the smallest mean."""
    return int(np.argmin([mean(slowdown[..., at]) for at in range(slowdown.shape[-1])]))


def with_best_windows(slowdown: np.ndarray) -> np.ndarray:
    """The slowdown by trace, device and cache, with the best window for each device."""
    best = [slowdown[:, at][..., best_window(slowdown[:, at])] for at in range(len(DEVICES))]
    return np.stack(best, axis=1)


def window_name(policy: str, at: int) -> str:
    return "–" if policy in WITHOUT_WINDOW else str(WINDOWS_KIB[at])


def table(head: list[str], rows: list[list[str]]) -> str:
    align = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, align, *rows])


def markdown(directory: Path) -> str:
    study = load(directory)
    ratio, sections = study.slowdown, []
    complete = int(study.complete.sum())
    situations = study.complete.size
    origins = [name.split("-")[0] for name in study.traces]
    counts = ", ".join(f"{origins.count(name)} {name}" for name in dict.fromkeys(origins))
    sections.append(
        f"{len(study.traces)} traces ({counts}), {study.rows:,} simulations, simulator"
        f" {study.simulator_version}. {complete:,} of {situations:,} situations (trace × device ×"
        f" cache) have all of their cells; the tables use these."
    )
    sections.append("### Policies\n\n" + _policies(study, ratio))
    sections.append("### Policies by device\n\n" + _devices(ratio))
    sections.append(f"### {TODAY} by window\n\n" + _windows(ratio, TODAY))
    sections.append("### auto by window\n\n" + _windows(ratio, "auto"))
    sections.append("### Kinds of reads\n\n" + _kinds(study, ratio))
    sections.append("### Against today's setting\n\n" + _against_today(study, ratio))
    sections.append("### Subsets of the traces\n\n" + _subsets(study, ratio))
    sections.append("### Caches\n\n" + _caches(ratio))
    sections.append("### Where today's setting loses\n\n" + _losses(study, ratio))
    sections.append("### Traces\n\n" + _traces(study, ratio))
    return "\n\n".join(sections)


def _policies(study: Study, ratio: np.ndarray) -> str:
    rows = []
    within = ratio <= SAME_RATIO
    any_window = within.any(axis=4)[study.complete]
    for at, name in enumerate(NAMES):
        own = ratio[:, :, :, at, :]
        one = best_window(own)
        by_device = with_best_windows(own)
        default = own[..., DEFAULT]
        known = default[~np.isnan(default)]
        bytes_read = [
            study.amplification[:, :, :, at, window][study.complete].mean()
            for window in (DEFAULT, one)
        ]
        rows.append(
            [
                name,
                f"{mean(default):.2f}",
                f"{np.percentile(known, 95):.1f}",
                f"{known.max():.0f}",
                f"{mean(own[..., one]):.2f} ({window_name(name, one)})",
                f"{mean(by_device):.2f}",
                f"{mean(np.min(own, axis=3)):.2f}",
                f"{100 * any_window[:, at].mean():.0f}",
                f"{bytes_read[0]:.2f} → {bytes_read[1]:.2f}",
            ]
        )
    rows.sort(key=lambda row: float(row[5]))
    head = [
        "policy",
        "128 KiB",
        "95th percentile",
        "worst",
        "best one window (KiB)",
        "best window for each device",
        "best window for each situation",
        "best or within 2 %, % of situations",
        "bytes read ÷ used, 128 KiB → best one window",
    ]
    return table(head, rows)


def _by_part(head: str, parts: Mapping[str, np.ndarray]) -> str:
    """The policies with 128 KiB and with the best window, in each part of the situations."""
    rows = []
    for at, name in enumerate(NAMES):
        row = [name]
        for part in parts.values():
            own = part[..., at, :]
            best = best_window(own)
            default, tuned = mean(own[..., DEFAULT]), mean(own[..., best])
            row.append(f"{default:.2f} → {tuned:.2f} ({window_name(name, best)})")
        rows.append(row)
    return table([head, *parts], rows)


def _devices(ratio: np.ndarray) -> str:
    parts = {name: ratio[:, at] for at, name in enumerate(DEVICES)}
    return _by_part("128 KiB → best window", parts)


CHOICES = [
    (TODAY, 128),
    (TODAY, 512),
    ("auto", 128),
    ("auto", 512),
    ("ara-2006", 128),
    ("ara-2006", 8192),
    ("zfs", 1024),
    ("fixed", 512),
]


def _kinds(study: Study, ratio: np.ndarray) -> str:
    rows = []
    for kind, text in KINDS.items():
        traces = [study.traces.index(name) for name in text.split() if name in study.traces]
        row = [f"{kind} ({len(traces)} traces)"]
        for policy, kib in CHOICES:
            at = (NAMES.index(policy), WINDOWS_KIB.index(kib))
            bytes_read = study.amplification[traces][..., *at]
            row.append(f"{mean(ratio[traces][..., *at]):.2f} / {np.nanmean(bytes_read):.1f}")
        rows.append(row)
    heads = [f"{policy} {kib}" for policy, kib in CHOICES]
    return table(["slowdown / bytes read ÷ used", *heads], rows)


def _against_today(study: Study, ratio: np.ndarray) -> str:
    """How often another choice is faster or slower than today's, and where it is slowest."""
    today = ratio[..., NAMES.index(TODAY), DEFAULT]
    rows = []
    for policy, kib in CHOICES[1:]:
        time = ratio[..., NAMES.index(policy), WINDOWS_KIB.index(kib)] / today
        known = time[~np.isnan(time)]
        losers = sorted(
            ((mean(time[at]), name) for at, name in enumerate(study.traces)), reverse=True
        )
        slowest = ", ".join(f"{name} {value:.2f}" for value, name in losers[:3])
        rows.append(
            [
                f"{policy} {kib}",
                f"{mean(time):.2f}",
                f"{100 * (known < 0.97).mean():.0f}",
                f"{100 * (known > 1.03).mean():.0f}",
                f"{known.max():.1f}",
                slowest,
            ]
        )
    head = [
        f"choice ÷ {TODAY} 128",
        "time",
        "faster by 3 %, % of situations",
        "slower by 3 %",
        "worst",
        "slowest traces",
    ]
    return table(head, rows)


def _subsets(study: Study, ratio: np.ndarray) -> str:
    """Whether the order of the policies rests on a kind of trace."""
    kinds = {
        "all": lambda name: True,
        **{origin: lambda name, of=origin: name.startswith(of) for origin in ORIGINS},
        "none read backward": lambda name: not any(word in name for word in BACKWARD),
    }
    parts = {kind: ratio[[is_in(it) for it in study.traces]] for kind, is_in in kinds.items()}
    return _by_part("128 KiB → best one window", parts)


def _windows(ratio: np.ndarray, policy: str) -> str:
    own = ratio[:, :, :, NAMES.index(policy), :]
    rows = [
        [
            str(kib),
            *(f"{mean(own[:, device, :, at]):.2f}" for device in range(len(DEVICES))),
            f"{mean(own[..., at]):.2f}",
            f"{np.nanmax(own[..., at]):.0f}",
        ]
        for at, kib in enumerate(WINDOWS_KIB)
    ]
    return table(["KiB", *DEVICES, "all", "worst"], rows)


def _caches(ratio: np.ndarray) -> str:
    levels = range(CACHE_LEVELS)
    parts = {f"cache {at + 1} of {CACHE_LEVELS}": ratio[:, :, at] for at in levels}
    return _by_part("128 KiB → best window", parts)


def _winner(ratio: np.ndarray) -> tuple[str, int]:
    """The policy and window with the smallest mean over the situations given."""
    means = [
        (mean(ratio[..., policy, window]), policy, window)
        for policy in RIVALS
        for window in range(len(WINDOWS_KIB))
    ]
    _, policy, window = min(means)
    return NAMES[policy], window


def _losses(study: Study, ratio: np.ndarray) -> str:
    """Traces and devices where today's setting loses most, and which single choice wins there."""
    today = NAMES.index(TODAY)
    found = []
    for trace, name in enumerate(study.traces):
        for device, device_name in enumerate(DEVICES):
            own = ratio[trace, device]
            if not study.complete[trace, device].any():
                continue
            policy, window = _winner(own)
            at = NAMES.index(policy)
            lost = mean(own[:, today, DEFAULT]) / mean(own[:, at, window])
            tuned = best_window(own[:, today, :])
            found.append(
                [
                    lost,
                    [
                        name,
                        device_name,
                        f"{mean(own[:, today, DEFAULT]):.2f}",
                        f"{mean(own[:, today, tuned]):.2f} ({WINDOWS_KIB[tuned]})",
                        f"{policy} {window_name(policy, window)}",
                        f"{mean(own[:, at, window]):.2f}",
                    ],
                ]
            )
    found.sort(key=lambda row: -row[0])
    head = ["trace", "device", f"{TODAY}, 128 KiB", "its best window", "best choice", "of the best"]
    return table(head, [row for _, row in found[:24]])


def _traces(study: Study, ratio: np.ndarray) -> str:
    today, auto = NAMES.index(TODAY), NAMES.index("auto")
    rows = []
    for trace, name in enumerate(study.traces):
        if not study.complete[trace].any():
            continue
        policy, window = _winner(ratio[trace])
        default = [f"{mean(ratio[trace, device, :, today, DEFAULT]):.2f}" for device in range(6)]
        rows.append(
            [
                name,
                *default,
                f"{mean(ratio[trace, :, :, auto, DEFAULT]):.2f}",
                f"{policy} {window_name(policy, window)}:"
                f" {mean(ratio[trace, :, :, NAMES.index(policy), window]):.2f}",
            ]
        )
    heads = [f"{TODAY} on {device}" if at == 0 else device for at, device in enumerate(DEVICES)]
    return table(["trace", *heads, "auto", "best one choice"], rows)


def draw(directory: Path, out: Path) -> None:
    """Draws the slowdown by window for each device, and its distribution."""
    study = load(directory)
    ratio = study.slowdown
    shown = [TODAY, "linux-legacy", "ara-2006", "zfs", "amp", "auto"]
    panels = {
        device: {
            name: [mean(ratio[:, at, :, NAMES.index(name), w]) for w in range(len(WINDOWS_KIB))]
            for name in shown
        }
        for at, device in enumerate(DEVICES)
    }
    (out / "study-windows.svg").write_text(line_panels(panels, [str(kib) for kib in WINDOWS_KIB]))
    own = ratio[:, :, :, NAMES.index(TODAY), :]
    auto = ratio[:, :, :, NAMES.index("auto"), DEFAULT]
    samples = {
        "no read-ahead": ratio[:, :, :, NAMES.index("none"), DEFAULT],
        f"{TODAY}, 128 KiB": own[..., DEFAULT],
        f"{TODAY}, best window for each device": with_best_windows(own),
        f"{TODAY}, best window for each situation": np.min(own, axis=3),
        "auto": auto,
    }
    sorted_samples = {name: np.sort(it[~np.isnan(it)]) for name, it in samples.items()}
    (out / "study-regret.svg").write_text(curves(sorted_samples))
