#!/usr/bin/env python3
"""Makes one data set of `cargo xtask real`: data.py NAME DIRECTORY. The same bytes each time."""

import os
import random
import subprocess
import sys

SEED = 17
MIB = 1 << 20


def array(path):
    """1.5 GiB of pages for random pieces of a mapping."""
    import numpy

    generator = numpy.random.default_rng(SEED)
    with open(f"{path}/array", "wb") as file:
        for _ in range(1536):
            file.write(generator.bytes(MIB))


def sqlite(path):
    """A table of 1.2 million rows, and an index over a random column: 600 MB."""
    import sqlite3

    generator = random.Random(SEED)
    connection = sqlite3.connect(f"{path}/db")
    connection.execute("pragma journal_mode=off")
    connection.execute("pragma synchronous=off")
    connection.execute("create table rows (id integer primary key, k integer, payload blob)")
    for start in range(0, 1_200_000, 10_000):
        rows = (
            (row, generator.getrandbits(48), generator.randbytes(420))
            for row in range(start, start + 10_000)
        )
        connection.executemany("insert into rows values (?, ?, ?)", rows)
    connection.execute("create index by_k on rows (k)")
    connection.commit()


def duckdb(path):
    """A table of 14 million rows as DuckDB keeps it, and as Parquet: 340 MB each."""
    import duckdb

    connection = duckdb.connect(f"{path}/db")
    connection.execute("set threads=1")
    columns = ", ".join(f"hash(i * 4 + {column}) as c{column}" for column in range(3))
    connection.execute(f"create table t as select i, {columns} from range(14000000) r(i)")
    connection.execute(f"copy t to '{path}/parquet' (format parquet)")
    connection.execute("checkpoint")


def lmdb(path):
    """600,000 records inserted in random order, so that the leaves are scattered: 1.5 GB."""
    import lmdb

    generator = random.Random(SEED)
    keys = list(range(600_000))
    generator.shuffle(keys)
    environment = lmdb.open(path, map_size=4 << 30, sync=False)
    for start in range(0, len(keys), 20_000):
        with environment.begin(write=True) as transaction:
            for key in keys[start : start + 20_000]:
                transaction.put(b"%012d" % key, generator.randbytes(1500))
    environment.close()


def safetensors(path):
    """64 tensors of 10 MB."""
    import numpy
    from safetensors.numpy import save_file

    generator = numpy.random.default_rng(SEED)
    tensors = {
        f"layer{n:03}": generator.integers(0, 1 << 30, 2_500_000, dtype=numpy.int32)
        for n in range(64)
    }
    save_file(tensors, f"{path}/model.safetensors")


def text(generator, size):
    """Lines of words."""
    lines = []
    while size > 0:
        lines.append(" ".join("%x" % generator.getrandbits(20) for _ in range(10)))
        size -= len(lines[-1]) + 1
    return ("\n".join(lines) + "\n").encode()


def tree(path):
    """4,700 text files, 61 MB, and a large file beside them."""
    generator = random.Random(SEED)
    for number in range(4700):
        folder = f"{path}/d{number % 61:02}"
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/f{number}.txt", "wb") as file:
            file.write(text(generator, int(generator.expovariate(1 / 13_000)) + 200))
    with open(f"{path}/pack", "wb") as file:
        for _ in range(400):
            file.write(generator.randbytes(MIB))


def git(path):
    """A repository of 8,000 commits to 2,000 files."""
    generator = random.Random(SEED)
    subprocess.run(["git", "init", "-q", "--bare", path], check=True)
    command = ["git", "-C", path, "fast-import", "--quiet"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        out = process.stdin
        for commit in range(8000):
            message = text(generator, 300)
            out.write(b"commit refs/heads/master\ncommitter A <a@b> %d +0000\n" % (10**9 + commit))
            out.write(b"data %d\n%s" % (len(message), message))
            for _ in range(3):
                content = text(generator, 6000)
                name = b"d%d/f%d" % (generator.randrange(40), generator.randrange(50))
                out.write(b"M 644 inline %s\ndata %d\n%s\n" % (name, len(content), content))
        out.close()
        if process.wait() != 0:
            sys.exit("git fast-import failed")


def files(path):
    """Eight files of 64 MiB."""
    generator = random.Random(SEED)
    for number in range(8):
        with open(f"{path}/f{number}", "wb") as file:
            for _ in range(64):
                file.write(generator.randbytes(MIB))


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])
