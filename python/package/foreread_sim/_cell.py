"""Cells: what is simulated with a trace."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from . import _native
from ._errors import UsageError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cell:
    """One simulation of a trace. The defaults are those of the target `sim:` of the command line.

    Raises `UsageError` if a device, policy or setting does not exist; the message names the
    nearest one.
    """

    policy: str = "linux-6.18"
    """Read-ahead algorithm: `NAME[:KEY=VALUE…]`. `policies()` lists the names."""
    device: str = "raid10-2008"
    """Device model: `NAME[,key=value…]`, or a TOML file. `devices()` lists the names."""
    cache_bytes: int = 8 << 30
    """Size of the page cache in bytes."""
    read_ahead_kib: int = 128
    """Read-ahead of the device (`read_ahead_kb`) in KiB; a multiple of 4."""
    filesystem: str = "xfs"
    """`xfs`, `ext4`, `ext3` or `plain`: the layout of files, and whether they have large folios."""
    pace: str = "asap"
    """When a reader reads again: `asap` at once, `recorded` not before the recorded time, `think`
    after the recorded time between its reads."""
    compact: bool = False
    """Whether parts of files that the trace never reads are left out."""
    seed: int = 0
    """Seed of the device's random numbers."""
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Other keys of the simulator; `foreread sim keys` lists them."""

    def __post_init__(self) -> None:
        _native.check_cell(self.to_json())

    def to_json(self) -> str:
        return json.dumps(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        fields = dataclasses.fields(self)
        values = {field.name: getattr(self, field.name) for field in fields}
        values["settings"] = {key: str(value) for key, value in self.settings.items()}
        return values


def grid(**values: Any) -> dict[str, list[Any]]:
    """Values for fields of a cell; a `Plan` simulates all of their combinations.

    A single value stands for a list of one: `grid(policy=["linux-6.18", "zfs"], seed=range(3),
    device="hdd-2008")` has six cells. Raises `UsageError` for a name that is no field of `Cell`.
    """
    known = [field.name for field in dataclasses.fields(Cell)]
    found = {}
    for name, value in values.items():
        if name not in known:
            raise UsageError(f"grid: unknown key {name!r}; a cell has {', '.join(known)}")
        is_list = isinstance(value, Sequence | set | frozenset) and not isinstance(value, str)
        found[name] = list(value) if is_list else [value]
    return found
