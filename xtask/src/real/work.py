#!/usr/bin/env python3
"""The work of one program of `cargo xtask real`: work.py NAME DIRECTORY COUNT SEED.

Prints the seconds that it took without starting Python and loading libraries.
"""

import contextlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import servers

# Shell commands in the directory of the data set. `$N` is the number of operations, `$SEED`
# chooses what is read, and `$OUT` is a directory in memory for what is written.
SHELL = {
    "ripgrep": "rg --no-ignore -c zzzz d* || true",
    "tar": "tar -cf - . | cat > /dev/null",
    "rsync": "rsync -a d* $OUT",
    "cp": "cp -r d* $OUT",
    "git-log": "git log --raw > /dev/null",
    "git-gc": "git rev-list --objects --all | git pack-objects -q --stdout > /dev/null",
    "git-checkout": "GIT_INDEX_FILE=$OUT/.index git --work-tree=$OUT checkout -q -f master -- .",
    "git-grep": "git grep -c zzzz master || true",
    "git-fsck": "git fsck --full --no-progress --no-dangling",
    "tac": "tac f0",
    "blast": "blastn -db db -query query -num_threads 1",
    "qcow2-convert": "qemu-img convert -n --target-image-opts image driver=null-co,size=320M",
    "bdb-dump": "db5.3_dump db",
    "borg-extract": "export BORG_BASE_DIR=$OUT BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes"
    " BORG_RELOCATED_REPO_ACCESS_IS_OK=yes;"
    " borg --bypass-lock extract --stdout repository::second",
    "vips-crop": "for n in $(seq $N); do"
    " vips crop picture.tif $OUT/crop.v $(( (n * 7919 + SEED * 104729) % 11000 ))"
    " $(( (n * 15485863 + SEED * 32452843) % 11000 )) 1000 1000; done",
    "cat-8": "for f in f*; do cat $f > /dev/null & done; wait",
    "cat-64": "for f in small/*; do cat $f > /dev/null & done; wait",
    "zstd": "for f in f0 f1 f2; do zstd -q -c $f > /dev/null; done",
    "ffmpeg-seeks": "for n in $(seq $N); do"
    " ffmpeg -v error -ss $(( (n * 7919 + SEED * 104729) % 179 )) -i v.mkv -frames:v 1"
    " -f null - < /dev/null; done",
    "samtools-regions": "for n in $(seq $N); do"
    " at=$(( (n * 15485863 + SEED * 32452843) % 90000000 ));"
    " samtools view -c reads.bam c:$at-$(( at + 20000 )) > /dev/null; done",
    "plocate": "for n in $(seq $N); do"
    " plocate -d db -c $(printf %04x $(( (n * 7919 + SEED * 104729) % 65536 ))) > /dev/null"
    " || true; done",
    "python-imports": "PYTHONPATH=site python3 -B -c"
    " 'import numpy, pyarrow.parquet, pyarrow.dataset, polars, h5py, zarr'",
    "compile": "export GCC_EXEC_PREFIX=; printf '%s\\n' s*.c | xargs -n 3 -P 2"
    " gcc -B gcc/ -nostdinc -isystem gcc/include -isystem include"
    " -isystem include/x86_64-linux-gnu -fsyntax-only",
}

# Benchmarks of RocksDB's db_bench, and what they need besides.
ROCKSDB = {
    "readrandom": "--reads=$N",
    "readseq": "--reads=400000",
    "readreverse": "--reads=40000",
    "seekrandom": "--reads=$N --seek_nexts=60",
    "multireadrandom": "--reads=$N --batch_size=16 --async_io=false",
    "mixgraph": "--reads=$N --mix_get_ratio=0.85 --mix_put_ratio=0 --mix_seek_ratio=0.15",
    "mmap": "--reads=$N --mmap_read=true",
}


def shell(path, line, count):
    @contextlib.contextmanager
    def prepared():
        with tempfile.TemporaryDirectory(dir="/dev/shm") as out:
            given = {"N": str(count), "SEED": sys.argv[4], "OUT": out}
            # Git refuses a repository that another user owns.
            trust = {"COUNT": "1", "KEY_0": "safe.directory", "VALUE_0": "*"}
            given |= {f"GIT_CONFIG_{name}": value for name, value in trust.items()}
            yield lambda: subprocess.run(
                ["sh", "-c", line], cwd=path, env=os.environ | given, check=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )  # fmt: skip

    return prepared()


def rocksdb(path, benchmark, count):
    kind = "readrandom" if benchmark == "mmap" else benchmark
    fixed = "--use_existing_db=true --readonly=true --compression_type=none --cache_size=8388608"
    sizes = "--num=1200000 --value_size=500 --key_size=16 --threads=1 --seed=$SEED"
    line = f"db_bench --benchmarks={kind} --db=db {fixed} {sizes} {ROCKSDB[benchmark]}"
    return shell(path, f"{line} 2> $OUT/errors || {{ cat $OUT/errors >&2; false; }}", count)


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


def numpy_columns(path, count):
    """One column after another of a matrix with rows of 384 KiB."""
    import numpy

    matrix = numpy.memmap(f"{path}/array", dtype=numpy.uint8, mode="r").reshape(-1, 384 << 10)
    first = random.randrange(0, 300 << 10)

    def work():
        for column in range(max(1, count // len(matrix))):
            int(matrix[:, first + column * 4096].sum())

    return work


def together(*works):
    """Several at once, each in a thread of its own."""

    def work():
        threads = [threading.Thread(target=one) for one in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return work


def pieces_and_copy(path, count):
    """Random pieces of a map while another program copies the same file."""
    copy = ["dd", f"if={path}/array", "of=/dev/null", "bs=128K", "count=2400", "status=none"]
    return together(numpy_8(path, count), lambda: subprocess.run(copy, check=True))


def sqlite(path, statement, parameters):
    import sqlite3

    uri = f"file:{path}/db?mode=ro"
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False)

    def work():
        for values in parameters:
            for _ in connection.execute(statement, values):
                pass

    return work


def sqlite_scan(path, _count):
    # A sum of this many values would be too large for an integer.
    return sqlite(path, "select total(k), max(payload) from rows", [()])


def sqlite_index(path, count):
    statement = "select payload from rows indexed by by_k where k >= ? order by k limit ?"
    return sqlite(path, statement, [(random.getrandbits(47), count)])


def sqlite_lookups(path, count):
    keys = ((random.randrange(1_200_000),) for _ in range(count))
    return sqlite(path, "select payload from rows where id = ?", keys)


def scan_and_lookups(path, count):
    return together(sqlite_scan(path, 0), sqlite_lookups(path, count))


def rare_words(count):
    return ["w%d" % random.randrange(2000, 60000) for _ in range(count)]


def sqlite_fts5(path, count):
    words = [(word,) for word in rare_words(count)]
    return sqlite(path, "select body from docs where docs match ? limit 10", words)


def search_index(path, count):
    import tantivy

    index = tantivy.Index.open(path)
    searcher = index.searcher()

    def work():
        for word in rare_words(count):
            for _, address in searcher.search(index.parse_query(word, ["body"]), 10).hits:
                searcher.doc(address)

    return work


def duckdb(path, table):
    import duckdb

    connection = duckdb.connect(f"{path}/db", read_only=True)
    query = f"select sum(i % 7), max(c0), max(c1), max(c2) from {table}"
    return lambda: connection.execute(query).fetchall()


def duckdb_native(path, _count):
    return duckdb(path, "t")


def duckdb_parquet(path, _count):
    return duckdb(path, f"read_parquet('{path}/parquet')")


def arrow_parquet(path, _count):
    import pyarrow.parquet

    return lambda: pyarrow.parquet.read_table(f"{path}/parquet", columns=["c1"])


def polars_parquet(path, _count):
    import polars

    column = polars.col("c2").max()
    return lambda: polars.scan_parquet(f"{path}/parquet").select(column).collect()


def arrow_shuffled(path, count):
    import pyarrow

    records = pyarrow.ipc.open_file(pyarrow.memory_map(f"{path}/records"))

    def work():
        for _ in range(count):
            batch = records.get_batch(random.randrange(300))
            len(batch.column(1)[random.randrange(1000)].as_py())

    return work


def faiss_search(path, count):
    import faiss
    import numpy

    faiss.omp_set_num_threads(1)
    index = faiss.read_index(f"{path}/index", faiss.IO_FLAG_MMAP)
    index.nprobe = 4
    generator = numpy.random.default_rng(random.getrandbits(32))

    def work():
        for _ in range(count):
            index.search(generator.random((1, 128), dtype=numpy.float32), 10)

    return work


def usearch_search(path, count):
    import numpy
    from usearch.index import Index

    index = Index.restore(f"{path}/index", view=True)
    generator = numpy.random.default_rng(random.getrandbits(32))

    def work():
        for _ in range(count):
            index.search(generator.random(128, dtype=numpy.float32), 10)

    return work


def sqlite_check(path, _count):
    return sqlite(path, "pragma quick_check", [()])


def zip_members(path, count):
    import zipfile

    archive = zipfile.ZipFile(f"{path}/a.zip")
    names = sorted(archive.namelist())

    def work():
        for name in random.sample(names, count):
            archive.read(name)

    return work


def lmdb(path, keys, step="next"):
    import lmdb

    environment = lmdb.open(path, readonly=True, lock=False, readahead=True, map_size=4 << 30)

    def work():
        with environment.begin() as transaction:
            cursor = transaction.cursor()
            for first, records in keys:
                cursor.set_range(b"%012d" % first)
                for _ in range(records):
                    len(cursor.value())
                    getattr(cursor, step)()

    return work


def lmdb_get(path, count):
    return lmdb(path, ((random.randrange(600_000), 1) for _ in range(count)))


def lmdb_scan(path, count):
    return lmdb(path, [(random.randrange(300_000), count)])


def lmdb_reverse(path, count):
    return lmdb(path, [(random.randrange(300_000, 600_000), count)], "prev")


@contextlib.contextmanager
def own_leveldb(path, work):
    """LevelDB compacts tables that are read often. Every run must find the same database, so each
    has its own directory, with links to the tables. It stays until the next run, because a profile
    lists the directories of what was read when the program has ended."""
    import plyvel

    own = f"{path}/own"
    shutil.rmtree(own, ignore_errors=True)
    os.mkdir(own)
    for entry in [entry for entry in os.scandir(path) if entry.is_file()]:
        copy = os.link if entry.name.endswith(".ldb") else shutil.copy
        copy(entry.path, f"{own}/{entry.name}")
    with plyvel.DB(own) as database:
        yield lambda: work(database)


def leveldb_get(path, count):
    def work(database):
        for _ in range(count):
            database.get(b"%012d" % random.randrange(600_000))

    return own_leveldb(path, work)


def leveldb_range(path, reverse):
    def work(database):
        for _, record in zip(range(300_000), database.iterator(reverse=reverse)):
            len(record)

    return own_leveldb(path, work)


def leveldb_scan(path, _count):
    return leveldb_range(path, False)


def leveldb_reverse(path, _count):
    return leveldb_range(path, True)


def safetensors(path, shuffled):
    from safetensors import safe_open

    def work():
        with safe_open(f"{path}/model.safetensors", framework="numpy") as tensors:
            names = sorted(tensors.keys())
            if shuffled:
                random.shuffle(names)
                names = names[:40]
            for name in names:
                int(tensors.get_tensor(name)[::512].sum())

    return work


def safetensors_load(path, _count):
    return safetensors(path, False)


def safetensors_shuffled(path, _count):
    return safetensors(path, True)


def slices(volume, count):
    """Planes of a volume, along one axis after another."""

    def work():
        for number in range(max(3, count // 100)):
            axis = number % 3
            at = [slice(None)] * 3
            at[axis] = random.randrange(volume.shape[axis])
            volume[tuple(at)].sum()

    return work


def hdf5_slices(path, count):
    import h5py

    return slices(h5py.File(f"{path}/h5", "r")["volume"], count)


def zarr_slices(path, count):
    import zarr

    return slices(zarr.open_array(f"{path}/zarr", mode="r"), count)


@contextlib.contextmanager
def served(server, path, line, *client):
    """The work is a line of SQL, or a client of the server with its options."""
    with server(f"{path}/cluster") as sql:
        yield lambda: sql(line, *client)


def postgres_scan(path, _count):
    return served(servers.postgres, path, "select sum(id % 7), max(payload) from rows")


def postgres_index(path, count):
    some = f"select * from rows where k > {random.getrandbits(30)} order by k limit {count}"
    line = f"set enable_seqscan=off; set enable_bitmapscan=off; select max(payload) from ({some}) s"
    return served(servers.postgres, path, line)


def postgres_bitmap(path, _count):
    line = f"select max(payload) from rows where few = {random.randrange(700)}"
    return served(servers.postgres, path, f"set enable_seqscan=off; {line}")


def postgres_dump(path, _count):
    return served(servers.postgres, path, "-f /dev/null -t rows postgres", "pg_dump")


def postgres_basebackup(path, _count):
    return served(servers.postgres, path, "-D - -Ft -X none -c fast", "pg_basebackup")


def mariadb_scan(path, _count):
    return served(servers.mariadb, path, "select sum(id % 7), max(payload) from d.t")


def mariadb_index(path, count):
    some = f"select payload from d.t force index (k) where k > {random.getrandbits(29)}"
    some = f"{some} order by k limit {count}"
    return served(servers.mariadb, path, f"select max(payload) from ({some}) s")


def prepare(name, path, count):
    if name in SHELL:
        return shell(path, SHELL[name], count)
    if name.startswith("rocksdb-"):
        return rocksdb(path, name.removeprefix("rocksdb-"), count)
    work = globals()[name.replace("-", "_")](path, count)
    return work if hasattr(work, "__enter__") else contextlib.nullcontext(work)


if __name__ == "__main__":
    program, directory, times, seed = sys.argv[1:]
    random.seed(int(seed))
    with prepare(program, directory, int(times)) as prepared:
        began = time.monotonic()
        prepared()
        print("seconds", time.monotonic() - began, flush=True)
