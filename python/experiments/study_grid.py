"""What the study combines."""

DEVICES = ["hdd-2008", "raid10-2008", "ssd-sata", "nvme", "cloud-ssd", "nfs"]
WINDOWS_KIB = [32, 64, 128, 256, 512, 1024, 2048, 8192]
CACHE_LEVELS = 5
# The simulator refuses a cache that is smaller than a window.
CACHE_MIN_BYTES = 8 << 20

# What each policy is given for a window of so many KiB.
POLICIES = {
    "none": lambda kib: "none",
    "fixed": lambda kib: f"fixed:blocks={kib // 4}",
    "linux-6.18": lambda kib: "linux-6.18",
    "linux-on-demand": lambda kib: "linux-on-demand",
    "linux-legacy": lambda kib: "linux-legacy",
    "ara-2006": lambda kib: "ara-2006",
    "freebsd": lambda kib: f"freebsd:read_max={kib // 32}",
    "zfs": lambda kib: f"zfs:min_distance={min(kib, 4096)}K:max_distance={kib}K",
    "innodb": lambda kib: "innodb",
    "postgres-18": lambda kib: f"postgres-18:combine={min(kib, 1024)}K",
    "amp": lambda kib: f"amp:max={kib}K",
    "auto": lambda kib: "auto",
}

# Knows the next reads, as a program does that passes advice: no kernel can be as good without it.
# It is shown, but not part of "the best".
WITH_ADVICE = {"postgres-18"}
WITHOUT_WINDOW = {"none", "innodb"}
# Today's setting of Linux.
DEFAULT_KIB = 128
TODAY = "linux-6.18"


def cache_sizes(distinct_bytes: int) -> list[int]:
    """From a sixteenth of what a trace reads to twice as much, in equal ratios."""
    smallest = max(CACHE_MIN_BYTES, distinct_bytes // 16)
    largest = 2 * max(distinct_bytes, smallest)
    ratio = (largest / smallest) ** (1 / (CACHE_LEVELS - 1))
    sizes = [smallest * ratio**level for level in range(CACHE_LEVELS)]
    return [round(size / 65536) * 65536 for size in sizes]


# Traces by what their programs do; the others mix several kinds.
KINDS = {
    "backward": "declared-backward declared-backward-4 recorded-tac",
    "many small files": "recorded-heads recorded-tar recorded-cp recorded-grep recorded-sha256"
    " declared-small-files",
    "sorted look-ups in a table": "recorded-sqlite-lookups recorded-sqlite-join",
    "random in a mapping": "declared-rand-mmap declared-zipf-mmap",
    "strides, columns, short runs": "declared-stride declared-runs-32K declared-runs-256K"
    " recorded-npy-columns recorded-npy-every-8th declared-runs-1M-mmap",
    "several streams on one open file": "declared-interleaved-8 declared-one-fd-mixed"
    " declared-disorder",
    "random by read": "declared-rand-pread declared-zipf public-atlas10k public-barracuda"
    " public-cheetah9LP public-tpcc-small public-wsrch-small public-2_pools",
    "sequential": "declared-seq-1 declared-seq-8 declared-seq-64 declared-seq-large"
    " declared-seq-mmap declared-seq-shared recorded-cat-8 recorded-dd-1M recorded-zstd"
    " recorded-sort recorded-comm recorded-unzip-list recorded-sqlite-scan recorded-paste-8"
    " recorded-cmp",
}
