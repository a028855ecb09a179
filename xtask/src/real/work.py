#!/usr/bin/env python3
"""The work of one program of `cargo xtask real`: work.py NAME DIRECTORY COUNT SEED.

Prints the seconds that it took without starting Python and loading libraries.
"""

import random
import sys
import time


def numpy_pieces(path, count, pages):
    import numpy

    array = numpy.memmap(f"{path}/array", dtype=numpy.uint8, mode="r")
    last = len(array) // 4096 - pages

    def work():
        for _ in range(count):
            start = random.randrange(last) * 4096
            int(array[start : start + pages * 4096].sum())

    return work


def numpy_1(path, count):
    return numpy_pieces(path, count, 1)


def numpy_8(path, count):
    return numpy_pieces(path, count, 8)


def numpy_64(path, count):
    return numpy_pieces(path, count, 64)


def sqlite(path, statement, parameters):
    import sqlite3

    connection = sqlite3.connect(f"file:{path}/db?mode=ro", uri=True)

    def work():
        for values in parameters:
            for _ in connection.execute(statement, values):
                pass

    return work


def sqlite_scan(path, _count):
    return sqlite(path, "select sum(k), max(payload) from rows", [()])


def sqlite_index(path, count):
    statement = "select payload from rows indexed by by_k where k >= ? order by k limit ?"
    return sqlite(path, statement, [(random.getrandbits(47), count)])


def sqlite_lookups(path, count):
    keys = ((random.randrange(1_200_000),) for _ in range(count))
    return sqlite(path, "select payload from rows where id = ?", keys)


def duckdb(path, table):
    import duckdb

    connection = duckdb.connect(f"{path}/db", read_only=True)
    query = f"select sum(i % 7), max(c0), max(c1), max(c2) from {table}"
    return lambda: connection.execute(query).fetchall()


def duckdb_native(path, _count):
    return duckdb(path, "t")


def duckdb_parquet(path, _count):
    return duckdb(path, f"read_parquet('{path}/parquet')")


def lmdb(path, keys):
    import lmdb

    environment = lmdb.open(path, readonly=True, lock=False, readahead=True, map_size=4 << 30)

    def work():
        with environment.begin() as transaction:
            cursor = transaction.cursor()
            for first, records in keys:
                cursor.set_range(b"%012d" % first)
                for _ in range(records):
                    len(cursor.value())
                    cursor.next()

    return work


def lmdb_get(path, count):
    return lmdb(path, ((random.randrange(600_000), 1) for _ in range(count)))


def lmdb_scan(path, count):
    return lmdb(path, [(random.randrange(300_000), count)])


def safetensors_load(path, _count):
    from safetensors.numpy import load_file

    def work():
        for tensor in load_file(f"{path}/model.safetensors").values():
            int(tensor[::512].sum())

    return work


if __name__ == "__main__":
    name, directory, times, seed = sys.argv[1:]
    random.seed(int(seed))
    prepared = globals()[name](directory, int(times))
    began = time.monotonic()
    prepared()
    print("seconds", time.monotonic() - began)
