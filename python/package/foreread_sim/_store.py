"""Where results are: a directory, or an object store with a local mirror."""

import dataclasses
import hashlib
import os
import re
import tempfile
from pathlib import Path
from typing import Any, TypeGuard

from . import _native
from ._errors import ForereadError, UsageError

PART_NAME = re.compile(r"part-[0-9a-f]{32}\.parquet")


def open_store(out: "str | os.PathLike[str]") -> "Directory | ObjectStore":
    """The store at a path or a URL. Raises `UsageError` if the URL cannot be used."""
    return ObjectStore.at(out) if is_url(out) else Directory(Path(out).absolute())


def is_url(out: "str | os.PathLike[str]") -> TypeGuard[str]:
    return isinstance(out, str) and "://" in out


@dataclasses.dataclass(frozen=True)
class Directory:
    """A directory, which all workers share."""

    address: Path

    def local(self) -> Path:
        """The directory with all results."""
        return self.address

    def run(self, shard: str, name: str) -> None:
        """Simulates a shard and publishes its results."""
        _native.run_shard(shard, self.address)

    def poison(self, shard: str, name: str, reason: str) -> None:
        """Publishes that a shard cannot be simulated."""
        _native.poison_shard(shard, self.address, reason)

    def is_finished(self, shard: str, name: str) -> bool:
        return _native.shard_is_finished(shard, self.address)


@dataclasses.dataclass(frozen=True)
class ObjectStore:
    """A prefix of a bucket. An object appears as a whole or not at all, and its name follows from
    its content: a shard that runs twice writes the same bytes again."""

    address: str
    filesystem: Any
    prefix: str

    @staticmethod
    def at(url: str) -> "ObjectStore":
        try:
            from pyarrow import fs
        except ImportError as error:
            raise UsageError(f"{url}: object stores need the package pyarrow") from error
        try:
            filesystem, prefix = fs.FileSystem.from_uri(url)
        except (ValueError, OSError) as error:
            raise UsageError(f"{_without_secrets(url)}: {error}") from error
        return ObjectStore(url, filesystem, prefix.rstrip("/"))

    def local(self) -> Path:
        """Downloads the results that the mirror lacks, and returns the mirror."""
        from pyarrow import fs

        mirror = _cache() / hashlib.sha256(self.address.encode()).hexdigest()[:32]
        mirror.mkdir(parents=True, exist_ok=True)
        try:
            found = self.filesystem.get_file_info(
                fs.FileSelector(self.prefix, allow_not_found=True)
            )
            parts = {info.base_name: info for info in found if PART_NAME.fullmatch(info.base_name)}
            for name, info in parts.items():
                path = mirror / name
                if not path.exists() or path.stat().st_size != info.size:
                    self._download(info.path, path)
        except OSError as error:
            raise self._failed("read", error) from error
        # What was removed from the store is to be simulated again.
        for path in mirror.glob("part-*.parquet"):
            if path.name not in parts:
                path.unlink()
        return mirror

    def _download(self, source: str, path: Path) -> None:
        with self.filesystem.open_input_stream(source) as stream:
            content = stream.read()
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(content)
        os.replace(file.name, path)

    def run(self, shard: str, name: str) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            _native.run_shard(shard, scratch)
            self._upload(Path(scratch) / _part(name))

    def poison(self, shard: str, name: str, reason: str) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            _native.poison_shard(shard, scratch, reason)
            self._upload(Path(scratch) / _part(name))

    def _upload(self, path: Path) -> None:
        try:
            with self.filesystem.open_output_stream(f"{self.prefix}/{path.name}") as stream:
                stream.write(path.read_bytes())
        except OSError as error:
            raise self._failed("write", error) from error

    def is_finished(self, shard: str, name: str) -> bool:
        from pyarrow import fs

        try:
            [info] = self.filesystem.get_file_info([f"{self.prefix}/{_part(name)}"])
        except OSError as error:
            raise self._failed("read", error) from error
        return bool(info.type == fs.FileType.File)

    def _failed(self, verb: str, error: OSError) -> ForereadError:
        return ForereadError(f"cannot {verb} {_without_secrets(self.address)}: {error}")


def _part(name: str) -> str:
    return f"part-{name}.parquet"


def _without_secrets(url: str) -> str:
    """The URL without user, password and options."""
    return re.sub(r"//[^/@]*@", "//", url.split("?")[0])


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "foreread-sim"
