#!/usr/bin/env python3
"""Makes one data set of `cargo xtask real`: data.py NAME DIRECTORY. The same data each time."""

import os
import random
import shutil
import subprocess
import sys
import zipfile

import servers

SEED = 17
MIB = 1 << 20


def shuffled(generator, count):
    numbers = list(range(count))
    generator.shuffle(numbers)
    return numbers


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


def fts5(path):
    """300,000 documents of 60 words under an FTS5 index: 100 MB."""
    import sqlite3

    connection = sqlite3.connect(f"{path}/db")
    connection.execute("create virtual table docs using fts5(body)")
    documents = ((body,) for body in bodies(300_000, 60))
    connection.executemany("insert into docs values (?)", documents)
    connection.commit()


def bodies(documents, words):
    """Texts whose words are as unevenly frequent as those of a language."""
    generator = random.Random(SEED)
    for _ in range(documents):
        yield " ".join("w%d" % int(generator.paretovariate(0.6)) for _ in range(words))


def tantivy(path):
    """The postings and the stored text of 300,000 documents."""
    import tantivy

    schema = tantivy.SchemaBuilder().add_text_field("body", stored=True).build()
    writer = tantivy.Index(schema, path=path).writer(heap_size=200_000_000, num_threads=1)
    for body in bodies(300_000, 60):
        writer.add_document(tantivy.Document(body=body))
    writer.commit()
    writer.wait_merging_threads()


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
    keys = shuffled(generator, 600_000)
    environment = lmdb.open(path, map_size=4 << 30, sync=False)
    for start in range(0, len(keys), 20_000):
        with environment.begin(write=True) as transaction:
            for key in keys[start : start + 20_000]:
                transaction.put(b"%012d" % key, generator.randbytes(1500))
    environment.close()


def leveldb(path):
    """600,000 records of 500 bytes, inserted in random order and compacted: 300 MB."""
    import plyvel

    generator = random.Random(SEED)
    keys = shuffled(generator, 600_000)
    with plyvel.DB(path, create_if_missing=True, compression=None) as database:
        for key in keys:
            database.put(b"%012d" % key, generator.randbytes(500))
        database.compact_range()


def rocksdb(path):
    """1.2 million records of 500 bytes, inserted in random order and compacted: 390 MB."""
    benchmarks = "--benchmarks=fillrandom,compact"
    sizes = ["--num=1200000", "--value_size=500", "--compression_type=none", f"--seed={SEED}"]
    command = ["db_bench", benchmarks, f"--db={path}/db", *sizes, "--threads=1"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


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


def volumes(path):
    """A volume of 256 × 512 × 512 numbers in chunks of 64 KiB, as HDF5 and as Zarr."""
    import h5py
    import numpy
    import zarr

    generator = numpy.random.default_rng(SEED)
    volume = generator.random((256, 512, 512), dtype=numpy.float32)
    chunks = (16, 32, 32)
    with h5py.File(f"{path}/h5", "w") as file:
        file.create_dataset("volume", data=volume, chunks=chunks)
    zarr.create_array(f"{path}/zarr", data=volume, chunks=chunks, compressors=None)


def text(generator, size):
    """Lines of words."""
    lines = []
    while size > 0:
        lines.append(" ".join("%x" % generator.getrandbits(20) for _ in range(10)))
        size -= len(lines[-1]) + 1
    return ("\n".join(lines) + "\n").encode()


def text_files(generator):
    """The names and the contents of 4,700 files, 61 MB."""
    for number in range(4700):
        content = text(generator, int(generator.expovariate(1 / 13_000)) + 200)
        yield f"d{number % 61:02}/f{number}.txt", content


def tree(path):
    """4,700 text files, 61 MB, and a large file beside them."""
    generator = random.Random(SEED)
    for name, content in text_files(generator):
        os.makedirs(os.path.dirname(f"{path}/{name}"), exist_ok=True)
        with open(f"{path}/{name}", "wb") as file:
            file.write(content)
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
    """Eight files of 64 MiB, and 64 files of 4 MiB."""
    generator = random.Random(SEED)
    os.mkdir(f"{path}/small")
    sizes = [(f"{path}/f{number}", 64) for number in range(8)]
    sizes += [(f"{path}/small/f{number}", 4) for number in range(64)]
    for name, mebibytes in sizes:
        with open(name, "wb") as file:
            for _ in range(mebibytes):
                file.write(generator.randbytes(MIB))


def postgres(path):
    """A table of 700,000 rows with two indexes: 350 MB."""
    with servers.postgres(f"{path}/cluster", new=True) as sql:
        payload = "repeat(md5(i::text), 12)"
        sql(f"create table rows as select i as id, hashint8(i) as k, hashint8(i) % 700 as few,"
            f" {payload} as payload from generate_series(1, 700000) i")
        sql("create index on rows (k)")
        sql("create index on rows (few)")
        sql("vacuum (freeze, analyze) rows")


def mariadb(path):
    """A table of 600,000 rows with an index over a random column: 300 MB."""
    with servers.mariadb(f"{path}/cluster", new=True) as sql:
        sql("create database d")
        sql("create table d.t (id int primary key, k int, payload varchar(500), key (k))")
        sql("use d; insert into t select seq, floor(rand(17 + seq) * 1e9), repeat(md5(seq), 12)"
            " from seq_1_to_600000")


def alignments(path):
    """1.2 million reads of 100 bases aligned to one chromosome, as BAM with its index."""
    generator = random.Random(SEED)
    command = ["samtools", "view", "-b", "-o", f"{path}/reads.bam", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        process.stdin.write(b"@HD\tVN:1.6\tSO:coordinate\n@SQ\tSN:c\tLN:100000000\n")
        genome = "".join(generator.choices("ACGT", k=MIB))
        qualities = "".join(generator.choices("BCDEFGHI", k=MIB))
        for read in range(1_200_000):
            at, other = read * 80 % (MIB - 100), generator.randrange(MIB - 100)
            place = f"r{read}\t0\tc\t{read * 80 + 1}\t60\t100M\t*\t0\t0"
            line = f"{place}\t{genome[at : at + 100]}\t{qualities[other : other + 100]}\n"
            process.stdin.write(line.encode())
        process.stdin.close()
        if process.wait() != 0:
            sys.exit("samtools view failed")
    subprocess.run(["samtools", "index", f"{path}/reads.bam"], check=True)


def video(path):
    """Three minutes with much noise and a key frame each second: 250 MB."""
    source = f"testsrc2=s=640x360:r=25:d=180,noise=alls=25:allf=t:all_seed={SEED}"
    command = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", source]
    coding = ["-c:v", "mpeg4", "-q:v", "3", "-g", "25"]
    subprocess.run([*command, *coding, f"{path}/v.mkv"], check=True)


def paths(path):
    """A database of plocate over 1.5 million names."""
    generator = random.Random(SEED)
    with open(f"{path}/list", "w") as file:
        for _ in range(1_500_000):
            parts = [generator.getrandbits(8), generator.getrandbits(12), generator.getrandbits(40)]
            file.write("/srv/%02x/%03x/%x.dat\n" % tuple(parts))
    subprocess.run(["plocate-build", "-p", f"{path}/list", f"{path}/db"], check=True)
    os.remove(f"{path}/list")


def packages(path):
    """Python packages with their libraries."""
    import numpy

    site = os.path.dirname(os.path.dirname(numpy.__file__))
    unwanted = ["pip", "setuptools", "_duckdb", "tantivy", "faiss", "usearch", "numkong"]
    unwanted = shutil.ignore_patterns(*(f"{name}*" for name in unwanted))
    shutil.copytree(site, f"{path}/site", ignore=unwanted)


def compiler(path):
    """GCC, the system's headers, and 24 source files that include many of them."""
    version = subprocess.run(["gcc", "-print-file-name=cc1"], capture_output=True, text=True)
    shutil.copytree(os.path.dirname(version.stdout.strip()), f"{path}/gcc", symlinks=True)
    shutil.copytree("/usr/include", f"{path}/include", symlinks=True)
    names = "stdio stdlib string pthread unistd netdb sys/stat sys/socket math locale regex wchar"
    includes = "".join(f"#include <{name}.h>\n" for name in names.split())
    for number in range(24):
        with open(f"{path}/s{number}.c", "w") as file:
            file.write(f'{includes}int f{number}(void) {{ return printf("%d", {number}); }}\n')


def arrow(path):
    """300,000 records of 2 KiB in batches of 1,000, as Arrow's IPC format: 600 MB."""
    import pyarrow

    generator = random.Random(SEED)
    schema = pyarrow.schema([("id", pyarrow.int64()), ("payload", pyarrow.binary())])
    with pyarrow.ipc.new_file(f"{path}/records", schema) as file:
        for start in range(0, 300_000, 1000):
            payloads = [generator.randbytes(2048) for _ in range(1000)]
            file.write(pyarrow.record_batch([range(start, start + 1000), payloads], schema))


def vectors():
    """400,000 vectors of 128 random numbers."""
    import numpy

    return numpy.random.default_rng(SEED).random((400_000, 128), dtype=numpy.float32)


def faiss(path):
    """400,000 vectors in 2,048 lists, each stored in one piece: 210 MB."""
    import faiss

    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(128), 128, 2048)
    index.cp.niter = 4
    all_vectors = vectors()
    index.train(all_vectors[:80_000])
    index.add(all_vectors)
    faiss.write_index(index, f"{path}/index")


def usearch(path):
    """200,000 vectors as a graph of neighbours: 130 MB."""
    from usearch.index import Index

    index = Index(ndim=128, metric="l2sq", dtype="f32", connectivity=16, expansion_add=32)
    some = vectors()[:200_000]
    # With several threads, the graph would differ each time.
    index.add(range(len(some)), some, threads=1)
    index.save(f"{path}/index")


def blast(path):
    """3,000 sequences of 100,000 bases: 75 MB."""
    generator = random.Random(SEED)
    with open(f"{path}/fasta", "w") as file:
        for number in range(3000):
            sequence = "".join(generator.choices("ACGT", k=100_000))
            file.write(f">s{number}\n{sequence}\n")
    with open(f"{path}/query", "w") as file:
        file.write(f">q\n{sequence[:2000]}\n")
    command = ["makeblastdb", "-in", f"{path}/fasta", "-dbtype", "nucl", "-out", f"{path}/db"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    os.remove(f"{path}/fasta")


def qcow2(path):
    """The image of a disk of 320 MiB whose clusters of 64 KiB were written in random order."""
    clusters = shuffled(random.Random(SEED), 320 * 16)
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", f"{path}/image", "320M"], check=True)
    writes = "".join(f"write -q -P {1 + n % 255} {n * 64}k 64k\n" for n in clusters)
    subprocess.run(["qemu-io", "-t", "writeback", f"{path}/image"], input=writes.encode(),
                   check=True, stdout=subprocess.DEVNULL)  # fmt: skip


def berkeleydb(path):
    """25,000 records of 500 bytes, inserted in random order: 20 MB."""
    generator = random.Random(SEED)
    keys = shuffled(generator, 25_000)
    records = "".join(f"{key:012}\n{generator.randbytes(250).hex()}\n" for key in keys)
    command = ["db5.3_load", "-T", "-t", "btree", f"{path}/db"]
    subprocess.run(command, input=records.encode(), check=True)


def borg(path):
    """A repository of two backups; 200 files of 1.5 MB, of which half changed between them."""
    environment = os.environ | {
        "BORG_BASE_DIR": f"{path}/borg",
        "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes",
    }
    generator = random.Random(SEED)
    os.mkdir(f"{path}/source")
    subprocess.run(["borg", "init", "-e", "none", "repository"], check=True, cwd=path,
                   env=environment)  # fmt: skip
    for backup in ("first", "second"):
        for number in range(0, 200, 1 if backup == "first" else 2):
            with open(f"{path}/source/f{number}", "wb") as file:
                file.write(generator.randbytes(1_500_000))
        create = ["borg", "create", "-C", "none", f"repository::{backup}", "source"]
        subprocess.run(create, check=True, cwd=path, env=environment)
    shutil.rmtree(f"{path}/source")
    shutil.rmtree(f"{path}/borg")


def picture(path):
    """A picture of 12,000 × 12,000 points as a TIFF file with tiles of 256 × 256: 430 MB."""
    tiles = "[tile,tile-width=256,tile-height=256]"
    noise, grey = f"{path}/noise.v", f"{path}/grey.v"
    subprocess.run(["vips", "gaussnoise", noise, "12000", "12000", f"--seed={SEED}"], check=True)
    subprocess.run(["vips", "cast", noise, grey, "uchar"], check=True)
    os.remove(noise)
    joined = f"{grey} {grey} {grey}"
    subprocess.run(["vips", "bandjoin", joined, f"{path}/picture.tif{tiles}"], check=True)
    os.remove(grey)


def archive(path):
    """The text files of `tree` as a ZIP archive without compression: 62 MB."""
    with zipfile.ZipFile(f"{path}/a.zip", "w") as archive:
        for name, content in text_files(random.Random(SEED)):
            archive.writestr(zipfile.ZipInfo(name), content)


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])
