"""Reads the first 4 MiB of a file backward: fault.py FILE."""

import sys

with open(sys.argv[1], "rb", buffering=0) as file:
    for at in range((4 << 20) - 3809, -1, -3809):
        file.seek(at)
        file.read(3809)
