"""The chapter of the book and the notebook do what they say."""

import json
import os
import re
from pathlib import Path

import pytest

import foreread_sim as fs

REPOSITORY = Path(__file__).parent.parent.parent
NOTEBOOK = REPOSITORY / "docs/book/ten-minutes.ipynb"


def run_blocks(blocks, name):
    """One after another, as a reader does."""
    names = {}
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"{name}, block {number}", "exec"), names)
    return names


def test_the_chapter_can_be_followed(csv_trace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    csv_trace("reads.csv")
    csv_trace("a.csv")
    fs.Trace.open(csv_trace("b.csv", stride=3)).save("b.trace")
    text = (REPOSITORY / "docs/book/python.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 3
    names = run_blocks(blocks, "python.md")
    assert names["result"].cells == {"ok": 24}


def test_the_notebook_can_be_executed(tmp_path, monkeypatch, capsys):
    foreread = os.environ.get("FOREREAD")
    if not foreread:
        pytest.skip("FOREREAD does not name the binary")
    monkeypatch.chdir(tmp_path)
    binaries = tmp_path / "bin"
    binaries.mkdir()
    (binaries / "foreread").symlink_to(foreread)
    monkeypatch.setenv("PATH", f"{binaries}:{os.environ['PATH']}")
    notebook = json.loads(NOTEBOOK.read_text())
    assert notebook["nbformat"] == 4
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    run_blocks(["".join(cell["source"]) for cell in cells], "the notebook")
    assert "simulated again: 0 cells" in capsys.readouterr().out
