from pathlib import Path

import pytest


@pytest.fixture
def csv_trace(tmp_path: Path):
    """Writes traces of reads of 4 KiB, each `stride` blocks behind the one before."""

    def write(name: str = "a.csv", *, stride: int = 1, reads: int = 500) -> Path:
        rows = "".join(f"{n * stride * 4096},4096\n" for n in range(reads))
        path = tmp_path / name
        path.write_text(f"offset,length\n{rows}")
        return path

    return write
