"""The traces of the study: public ones, declared workloads, and recordings of programs.

`make(out, ...)` writes one FRTRACE2 file for each trace that `out` does not have, cut to a number
of reads. Programs are recorded with `foreread trace record`, over data that is made in `out`.
"""

import dataclasses
import os
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
from pathlib import Path

import foreread_sim as fs
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet

# One more read costs 2,880 simulations of it; a trace shorter than this has no steady state.
READS_MAX = 4000
REQUESTED_MAX_BYTES = 64 << 20
LIRS_PAGE_BYTES = 16 << 10
# More than the smallest simulated device holds: parts that are never read are left out.
COMPACT_ABOVE_BYTES = 50 << 30

DECLARED = {
    **{name: name for name in ["seq-1", "seq-8", "rand-pread", "rand-mmap", "mixed", "stride"]},
    "seq-64": 'pattern = "sequential"\nblock = "16K"\nreaders = 64',
    "seq-mmap": 'pattern = "sequential"\nblock = "4K"\nreaders = 4\naccess = "mmap"',
    "seq-large": 'pattern = "sequential"\nblock = "1M"\nreaders = 4',
    "seq-shared": 'pattern = "sequential"\nblock = "64K"\nreaders = 4\nsharing = "shared-file"',
    "backward": 'pattern = "backward"\nblock = "8K"',
    "backward-4": 'pattern = "backward"\nblock = "64K"\nreaders = 4',
    "zipf": 'pattern = "zipf"\ntheta = 0.99\nblock = "8K"\nreaders = 4',
    "zipf-mmap": 'pattern = "zipf"\ntheta = 0.8\nblock = "4K"\nreaders = 4\naccess = "mmap"',
    "runs-32K": 'pattern = "seek-and-read"\nblocks = 8\nblock = "4K"\nreaders = 4',
    "runs-256K": 'pattern = "seek-and-read"\nblocks = 16\nblock = "16K"\nreaders = 4',
    "runs-1M-mmap": 'pattern = "seek-and-read"\nblocks = 256\nblock = "4K"\naccess = "mmap"',
    "interleaved-8": 'pattern = "interleaved"\nstreams = 8\nblock = "16K"',
    "disorder": 'pattern = "disorder"\nspan = 8\nblock = "32K"\nreaders = 2',
    "small-files": 'pattern = "sequential"\nblock = "16K"\nreaders = 2\nfiles_per_reader = 400\n'
    'file_size = "64K"',
    "one-fd-mixed": 'pattern = "mixed"\nrandom_fraction = 0.3\nblock = "16K"\n'
    "same_open_file = true",
}  # fmt: skip

SQL = {
    "sqlite-scan": "select sum(length(text)) from item where text like '%zzz%'",
    "sqlite-lookups": "select sum(length(text)) from item where id in (select id from chosen)",
    "sqlite-range": "select sum(length(text)) from item where id between 9000 and 24000",
    "sqlite-by-key": "select sum(length(text)) from item indexed by by_key"
    " where key between '30' and '38'",
    "sqlite-join": "select count(*) from chosen join item using (id) join tag using (id)",
}

PYTHON = {
    "python-imports": "import numpy, pyarrow.dataset, pyarrow.parquet, sqlite3, asyncio, email",
    "npy-every-8th": "import os; f = os.open('array', os.O_RDONLY)\n"
    "for at in range(0, 96 << 20, 512 << 10): os.pread(f, 64 << 10, at)",
    "npy-columns": "import os; f = os.open('array', os.O_RDONLY)\n"
    "for column in range(4):\n"
    "  for row in range(256): os.pread(f, 8 << 10, row * (384 << 10) + column * (8 << 10))",
    "parquet-column": "import pyarrow.parquet as pq\n"
    "pq.ParquetFile('table.parquet').read(columns=['c3'], use_threads=False)",
    "parquet-rows": "import pyarrow.parquet as pq; f = pq.ParquetFile('table.parquet')\n"
    "for group in range(0, f.num_row_groups, 3): f.read_row_group(group, use_threads=False)",
    "zip-members": "import zipfile, random; random.seed(7); z = zipfile.ZipFile('tree.zip')\n"
    "for name in random.sample(z.namelist(), min(400, len(z.namelist()))): z.read(name)",
}

SHELL = {
    "tar": "tar -cf - tree | cat",
    "cp": "cp -r tree copy",
    "grep": "grep -rc zzzz tree || true",
    "ripgrep": "rg --no-ignore -c zzzz tree || true",
    "sha256": "find tree -type f -print0 | xargs -0 sha256sum",
    "heads": "find tree -type f -print0 | xargs -0 head -qc 4000",
    "git-grep": "git -C repository grep -c zzzz || true",
    "gcc": "gcc -fsyntax-only -x c++ includes.cpp || gcc -fsyntax-only includes.c",
    "sort": "LC_ALL=C sort -S 4M -T . lines",
    "tac": "tac lines",
    "cmp": "cmp -l lines lines-2 | tail -n 1",
    "comm": "LC_ALL=C comm -12 --nocheck-order lines lines-2",
    "paste-8": "paste part-a? ",
    "cat-8": "for part in part-a?; do cat $part & done; wait",
    "zstd": "zstd -q -1 -c lines || gzip -1c lines",
    "dd-1M": "dd if=array bs=1M count=64",
    "unzip-list": "unzip -tq tree.zip || python3 -m zipfile -t tree.zip",
}


@dataclasses.dataclass(frozen=True)
class StudyTrace:
    """A trace of the study."""

    name: str
    origin: str
    """`public`, `declared` or `recorded`."""
    path: Path
    requested_bytes: int
    distinct_bytes: int
    """Bytes of different pages that are read."""
    reads: int
    compact: bool
    """Whether its files are larger than the simulated devices."""


def make(out: Path, foreread: str, public: Path | None) -> list[StudyTrace]:
    """Makes the traces that `out` lacks, and describes all of them."""
    out.mkdir(parents=True, exist_ok=True)
    makers = {f"declared-{name}": (_declared, name) for name in DECLARED}
    for path in (
        sorted(public.rglob("*.trace.*")) + sorted(public.rglob("*.vscsi.*")) if public else []
    ):
        makers[f"public-{path.name.split('.')[0]}"] = (_public, path)
    recorded = [*SQL, *PYTHON, *SHELL]
    data = out / "data"
    if any(not (out / f"recorded-{name}.frtrace").exists() for name in recorded):
        _make_data(data)
    makers |= {
        f"recorded-{name}": (lambda at: _record(at, data, foreread), name) for name in recorded
    }
    traces = []
    for name, (maker, argument) in makers.items():
        path = out / f"{name}.frtrace"
        if not path.exists():
            try:
                _cut(maker(argument)).save(path.with_suffix(".part"))
            except (fs.ForereadError, OSError, subprocess.SubprocessError) as error:
                print(f"{name} cannot be made: {error}", file=sys.stderr)
                continue
            path.with_suffix(".part").rename(path)
        traces.append(_describe(name, path))
    return traces


def _declared(name: str) -> fs.Trace:
    text = DECLARED[name]
    if "=" in text:
        text = f'name = "{name}"\n{text}'
    return fs.Trace.from_workload(text, reads=READS_MAX * 2, file_bytes=32 << 20, seed=1)


def _public(path: Path) -> fs.Trace:
    trace = fs.Trace.open(path)
    if path.parent.name != "lirs":
        return trace
    # Page numbers of databases, of no stated size. With 4 KiB they would fit the smallest cache.
    table = pa.table(trace).drop_columns(["time_ns"])
    for name in ["offset_bytes", "length_bytes"]:
        column = pa.compute.multiply(table[name], pa.scalar(LIRS_PAGE_BYTES // 4096, pa.uint64()))
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return fs.Trace.from_arrow(table)


def _cut(trace: fs.Trace) -> fs.Trace:
    """The first reads of a trace, up to both limits."""
    table = pa.table(trace)
    table = table.filter(pa.compute.invert(table["write"]))
    total = np.cumsum(table["length_bytes"].to_numpy())
    reads = max(1, min(READS_MAX, int(np.searchsorted(total, REQUESTED_MAX_BYTES, "right"))))
    if not trace.is_timed:
        table = table.drop_columns(["time_ns"])
    return fs.Trace.from_arrow(table.slice(0, reads))


def _describe(name: str, path: Path) -> StudyTrace:
    trace = fs.Trace.open(path)
    table = pa.table(trace)
    offsets, lengths = (table[key].to_numpy() for key in ("offset_bytes", "length_bytes"))
    files = table["file"].combine_chunks()
    codes = (
        files.dictionary_encode().indices.to_numpy()
        if not pa.types.is_dictionary(files.type)
        else files.indices.to_numpy()
    )
    first, last = offsets // 4096, (offsets + lengths - 1) // 4096
    pages = set()
    for code, start, end in zip(codes, first, last, strict=True):
        pages.update((int(code) << 48) + page for page in range(int(start), int(end) + 1))
    return StudyTrace(
        name=name,
        origin=name.split("-")[0],
        path=path,
        requested_bytes=trace.requested_bytes,
        distinct_bytes=len(pages) * 4096,
        reads=trace.reads,
        compact=sum(size for _, size in trace.files) > COMPACT_ABOVE_BYTES,
    )


def _make_data(data: Path) -> None:
    """What the programs read: text, a tree of files, a repository, a database, tables."""
    if (data / "made").exists():
        return
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    rng = np.random.default_rng(5)
    rng.integers(0, 255, 96 << 20, dtype=np.uint8).tofile(data / "array")
    for name in ["lines", "lines-2"]:
        rows = rng.integers(0, 1 << 48, 2_000_000)
        (data / name).write_text("\n".join(f"{row:012x} {row % 1009:x}" for row in rows) + "\n")
    _run("split -n l/8 lines part-", data)
    columns = {f"c{at}": rng.integers(0, 1 << 40, 600_000) for at in range(16)}
    pa.parquet.write_table(
        pa.table(columns), data / "table.parquet", row_group_size=30_000, compression="none"
    )
    library = Path(sysconfig.get_paths()["stdlib"])
    shutil.copytree(library, data / "tree", ignore=shutil.ignore_patterns("site-packages"))
    _run(f"{sys.executable} -m zipfile -c tree.zip tree", data)
    shutil.rmtree(data / "copy", ignore_errors=True)
    # A repository of the same files, with a history that changes them.
    _run(
        "git init -q repository && cp -r tree repository/ && cd repository &&"
        " export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a"
        " && git add -A && git commit -qm 0 && for n in $(seq 20); do"
        ' find tree -name "*$n*.py" -exec sed -i "1i # $n" {} +; git commit -qam $n'
        " --allow-empty; done && git repack -adq",
        data,
    )
    headers = ["algorithm", "filesystem", "iostream", "map", "random", "regex", "thread"]
    (data / "includes.cpp").write_text("".join(f"#include <{name}>\n" for name in headers))
    (data / "includes.c").write_text("#include <stdio.h>\n#include <stdlib.h>\n")
    with sqlite3.connect(data / "base.db") as base:
        base.execute("pragma page_size = 4096")
        base.execute("create table item (id integer primary key, key text, text text)")
        base.execute("create table tag (id integer primary key, weight integer)")
        base.execute("create table chosen (id integer primary key)")
        ids = range(120_000)
        base.executemany(
            "insert into item values (?, ?, ?)",
            ((at, f"{at * 2654435761 % 2**32:08x}", f"{at:0400x}") for at in ids),
        )
        base.executemany("insert into tag values (?, ?)", ((at, at % 97) for at in ids))
        chosen = rng.choice(120_000, 2_500, replace=False)
        base.executemany("insert into chosen values (?)", ((int(at),) for at in chosen))
        base.execute("create index by_key on item (key)")
    (data / "made").touch()


def _record(name: str, data: Path, foreread: str) -> fs.Trace:
    """Records a program from a cold cache, and cuts what it asked for behind the ends of files."""
    if name in SQL:
        command = ["sqlite3", "base.db", f"pragma cache_size = 200; {SQL[name]}"]
    elif name in PYTHON:
        command = [sys.executable, "-B", "-c", PYTHON[name]]
    else:
        command = ["sh", "-c", SHELL[name]]
    shutil.rmtree(data / "copy", ignore_errors=True)
    os.sync()
    sizes = {}
    for path in data.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                at = os.fstat(file.fileno())
            device = f"{os.major(at.st_dev)}:{os.minor(at.st_dev)}/{at.st_ino}"
            sizes[device] = sizes[str(path)] = at.st_size
    into = data / "recording.frtrace"
    record = [foreread, "-q", "trace", "record", "--force", "-o", str(into), "--", *command]
    subprocess.run(
        record, cwd=data, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300
    )
    table = pa.table(fs.Trace.open(into)).combine_chunks()
    # The recorder knows the size only of files that were open when it looked.
    ends = np.array([sizes.get(file, 0) for file in table["file"].to_pylist()], dtype=np.int64)
    offsets = table["offset_bytes"].to_numpy().astype(np.int64)
    lengths = table["length_bytes"].to_numpy().astype(np.int64)
    lengths = np.where(ends > 0, np.minimum(lengths, ends - offsets), lengths)
    column = table.schema.get_field_index("length_bytes")
    lengths = pa.array(np.maximum(lengths, 0), pa.uint64())
    table = table.set_column(column, "length_bytes", lengths)
    return fs.Trace.from_arrow(table.filter(pa.compute.greater(table["length_bytes"], 0)))


def _run(line: str, directory: Path) -> None:
    subprocess.run(["sh", "-c", line], cwd=directory, check=True, stdout=subprocess.DEVNULL)
