"""The columns of the tables of ``api_db/``, and writing them."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from migrator.api_support.tables import Version, as_tuple, covers, ranges, rows

Key = TypeVar("Key")

COLUMNS = {
    "aliases": "alias api",
    "operators": "operator functions modules packages bundled equivalents"
    " differs limits backward hardware source",
    "allocator_options": "option from to values excludes source",
    "api_support": "api from to status hardware dtypes limits npu_name aten source",
    "by_hand/areas": "name status note source",
    "by_hand/composed": "api program",
    "by_hand/library_defaults": "api argument library harmless default value outcome unless evidence"
    " statement advice",
    "by_hand/npu_names": "cuda_name from to npu_name unchanged caveat advice source",
    "by_hand/operators": "api operator kernel_decides source",
    "composed": "api operators sometimes backward source",
    "custom_ops": "api from to kind replaces replaces_source use_instead evidence",
    "env_vars": "name npu_name same_values values advice source",
    "kernels": "op from to kind source",
    "library_defaults": "api argument position names library since until harmless default value outcome"
    " unless statement advice source",
    "launch_commands": "command starts positionals others flags values variables source",
    "limits": "code meaning",
    "mentioned_names": "name versions",
    "native_functions": "operator from to kind",
    "npu_names": "cuda_name from to kind npu_name unchanged advice source",
    "program_options": "programs options values needs_autoload advice source",
    "reached": "name from to how always sometimes",
    "npu_variables": "name default values meaning hardware note source",
    "releases": "torch_npu torch python torchvision torchaudio cann driver apex source",
    "shared_names": "cuda_name shared_name without_device source",
    "source_names": "cuda_name kind looked_up found_at",
    "torch_names": "name from to kind of parameters",
    "torch_wheels": "torch torch_wheel torchvision_wheel torchaudio_wheel source",
    "versions": "torch torch_npu evidence torch_wheel npu_wheel int_device_is_npu has_set_default_device "
    "has_oom_error has_amp_grad_scaler autoloads_backends source",
    "wheel_names": "module name kind from to",
}


def records(table: str, folder: Path) -> list[dict[str, str]]:
    """The rows of a table by its columns' names. Raises FileNotFoundError where the table is missing."""
    with open(folder / f"{table}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def order(folder: Path, table: str = "versions") -> list[str]:
    """The torch versions that the tables in a folder are about, or those of torch_wheels, oldest first."""
    return [row[0] for row in rows(table, folder)]


def write_as_they_are(path: Path, columns: Sequence[str], records: Iterable[Sequence[str]]) -> None:
    """Write a table that has an order of its own, with ``\\n`` line ends."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(records)


def write_in(folder: Path, table: str, records: Iterable[Sequence[str]]) -> None:
    """Write one of the tables, with its columns, sorted: the same rows give the same bytes."""
    in_order: list[list[str]] = sorted((list(record) for record in records), key=_order)
    write_as_they_are(folder / f"{table}.csv", COLUMNS[table].split(), in_order)


def _order(record: list[str]) -> list[tuple[int, Version, str]]:
    # Versions sort as numbers, 2.10.0 behind 2.9.0; everything else as text.
    return [
        (1, as_tuple(cell), "") if cell.replace(".", "").isdigit() and "." in cell else (0, (), cell)
        for cell in record
    ]


def spans(held: Mapping[Key, Collection[str]], order: Sequence[str]) -> Iterator[tuple[Key, str, str]]:
    """Each key with each range of the versions that hold it, its ends as in ``ranges``."""
    for key, versions in held.items():
        for first, last, _value in ranges(dict.fromkeys(versions, ()), order):
            yield key, first, last


def inside(first: str, last: str, order: Iterable[str]) -> list[str]:
    """The versions of ``order`` that a row's range holds."""
    return [version for version in order if covers(first, last, as_tuple(version))]
