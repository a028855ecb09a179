"""Reads a file with one fault each, or with --fixed without it: fault.py PATTERN FILE [--fixed]."""

import mmap
import os
import sys

SIZE = 4 << 20


def backward(name, fixed):
    with open(name, "rb", buffering=0) as file:
        size = SIZE // 2
        starts = range(size - 3809, -1, -3809)
        for at in range(0, size, 64 << 10) if fixed else starts:
            file.seek(at)
            file.read(64 << 10 if fixed else 3809)  # line of backward


def needless_random(name, fixed):
    with open(name, "rb", buffering=0) as file:
        if not fixed:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # line of needless-random
        for _ in range(8 * SIZE >> 14):
            file.read(16 << 10)


def mapped_sequential(name, fixed):
    with open(name, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
        if not fixed:
            data.madvise(mmap.MADV_RANDOM)
        total = 0
        for at in range(0, 4 * SIZE, 4096):
            total += data[at]  # line of mapped-sequential


PATTERNS = {
    "backward": backward,
    "needless-random": needless_random,
    "mapped-sequential": mapped_sequential,
}
PATTERNS[sys.argv[1]](sys.argv[2], "--fixed" in sys.argv)
