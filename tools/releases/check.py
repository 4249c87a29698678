"""Whether the tables of a folder hold together: columns, ranges, order, words, references, sources.

    python -m tools.releases.check [DIR]

Exit status: 0 no problem; 1 problems, one a line.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from migrator.api_support import tables
from migrator.api_support.verdict_type import HARDWARE
from tools.releases import npu_names, writing

# The columns that say what a row is about; they are unique, but for ranges.
_KEYS = {"by_hand/library_defaults": 2, "library_defaults": 2, "program_options": 2, "wheel_names": 2}
# versions.csv and releases.csv are in the order of versions; what is by hand is in that of its author.
_UNSORTED = ("releases", "torch_wheels", "versions", "by_hand/npu_names")
# The look-up searches these tables by halves and splits their lines at commas.
_SEARCHED = ("aliases", "api_support", "composed", "kernels", "native_functions", "reached", "torch_names")
# They speak of torch versions without a torch_npu, too.
_OF_TORCH = ("native_functions", "reached", "torch_names")
_YES_NO = {"yes", "no"}
_KINDS = {"module", "class", "function", "value", "import"}
_WORDS = {
    ("api_support", "status"): {"supported", "partial", "unsupported"},
    ("by_hand/areas", "status"): {"supported", "partial", "fallback", "unsupported"},
    ("by_hand/npu_names", "caveat"): {"", "yes"},
    ("by_hand/npu_names", "unchanged"): {"", "works", "no_effect", "raises"},
    ("by_hand/operators", "kernel_decides"): {"", "yes"},
    ("by_hand/library_defaults", "outcome"): {"raises", "cpu", "disabled"},
    ("library_defaults", "outcome"): {"raises", "cpu", "disabled"},
    ("custom_ops", "replaces_source"): {"", "docs", "docs-affinity", "name"},
    ("env_vars", "same_values"): {"", *_YES_NO},
    ("kernels", "kind"): {"kernel", "composite", "fallback", "none"},
    ("npu_names", "kind"): _KINDS,
    ("npu_names", "unchanged"): {"", "works", "no_effect", "raises"},
    ("reached", "how"): {"source", "compiled"},
    ("source_names", "kind"): {"", *_KINDS},
    ("source_names", "looked_up"): _YES_NO,
    ("torch_names", "kind"): {"module", "class", "function", "value", "alias", "maybe"},
    ("wheel_names", "kind"): _KINDS,
    **{("versions", switch): _YES_NO for switch in writing.COLUMNS["versions"].split()[5:10]},
}
# A parameter, or what signatures.py has besides, and its versions where not all have it.
_WORD = re.compile(r"([^\W\d]\w*|[*^?])(@[\d.]*-[\d.]*)?")
_EVIDENCE = {"docs", "wheel", "interpolated"}
_LARGEST = 3_000_000  # bytes; more than that nobody reviews

# What the cells of releases.csv look like; all but the first two may be empty.
_RELEASE_CELLS = {
    "torch_npu": r"\d+\.\d+\.\d+(rc\d+|\.post\d+)?",
    "torch": r"\d+\.\d+\.\d+",
    "python": r"(3\.\d+( 3\.\d+)*)?",
    "torchvision": r"(\d+\.\d+\.\d+)?",
    "torchaudio": r"(\d+\.\d+\.\d+)?",
    "cann": r"(\d+\.\d+\.(RC)?\d+(\.\d+)?)?",
    "driver": r"(V\d+R\d+C\d+(-V\d+R\d+C\d+)?( (?=V)|\Z))*",
    "apex": r"(\d+\.\d+\+ascend)?",
}

Records = dict[str, list[dict[str, str]]]


def problems(folder: Path) -> list[str]:
    """A line on each thing that is wrong with the tables in a folder; none where they hold together."""
    found: list[str] = []
    read: Records = {}
    for table in writing.COLUMNS:
        found += _read(folder, table, read)
    if found:
        return found  # without its columns a table cannot be looked into
    for table in writing.COLUMNS:
        found += [f"{table}.csv: {line}" for line in (*_rows(table, read), *_ranges(table, read))]
    found += _searched(folder)
    for look in (_releases, _versions, _references, _names, _limits, _natives, _torch):
        found += look(read)
    if found:
        return found
    try:
        derived = set(npu_names.lines(folder))
    except npu_names.ByHandError as error:
        return [str(error)]
    changed = {tuple(row) for row in tables.rows("npu_names", folder)} ^ derived
    not_derived = "is not what it is derived from gives: run tools/npu_names.py"
    return [f"npu_names.csv: {name} {not_derived}" for name in sorted({row[0] for row in changed})]


def _read(folder: Path, table: str, read: Records) -> Iterator[str]:
    path, columns = folder / f"{table}.csv", writing.COLUMNS[table].split()
    try:
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            if header != columns:
                yield f"{table}.csv: the columns are {','.join(header)}, not {','.join(columns)}"
                return
            read[table] = []
            for cells in reader:
                if len(cells) != len(columns):
                    yield f"{table}.csv:{reader.line_num}: {len(cells)} cells, not {len(columns)}"
                    return
                read[table].append(dict(zip(columns, cells)))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        yield f"{table}.csv cannot be read: {getattr(error, 'strerror', None) or error}"
        return
    if path.stat().st_size > _LARGEST:
        yield f"{table}.csv is larger than {_LARGEST:,} bytes"


def _key(table: str, record: dict[str, str]) -> list[str]:
    return list(record.values())[: _KEYS.get(table, 1)]


def _rows(table: str, read: Records) -> Iterator[str]:
    """Order, uniqueness, closed words, sources."""
    before: list[str] = []
    seen = set()
    for record in read[table]:
        cells = _key(table, record)
        name = ".".join(cells)
        if table not in _UNSORTED and before > cells:
            yield f"{name} is not in its place in the order of names"
        if "from" not in record and name in seen:
            yield f"{name} is there twice"
        before = cells
        seen.add(name)
        for column, cell in record.items():
            words = _WORDS.get((table, column))
            if words is not None and cell not in words:
                yield f"{name}: {column} is {cell!r}, not one of {', '.join(sorted(words - {''}))}"
            if cell != cell.strip() or "\n" in cell:
                yield f"{name}: {column} has spaces around it or a line end in it"
        if not record.get("source", "-"):
            yield f"{name} has no source"


def _ranges(table: str, read: Records) -> Iterator[str]:
    if "from" not in writing.COLUMNS[table].split():
        return
    about = "torch_wheels" if table in _OF_TORCH else "versions"
    known = {record["torch"] for record in read[about]} | {""}
    last_of: dict[str, str] = {}
    for record in read[table]:
        name, first, last = ".".join(_key(table, record)), record["from"], record["to"]
        unknown = {first, last} - known
        if unknown:
            yield f"{name}: torch {', '.join(unknown)} is not in {about}.csv"
        elif first and last and tables.as_tuple(first) > tables.as_tuple(last):
            yield f"{name}: its range ends before it begins"
        elif name in last_of and not (
            first and last_of[name] and tables.as_tuple(last_of[name]) < tables.as_tuple(first)
        ):
            yield f"{name}: two ranges overlap, or are not in order"
        last_of[name] = last if not unknown else ""


def _searched(folder: Path) -> Iterator[str]:
    for table in _SEARCHED:
        content = (folder / f"{table}.csv").read_bytes()
        if b'"' in content or b"\r" in content or not content.endswith(b"\n"):
            yield f"{table}.csv: the look-up needs lines without quotes that end in \\n"
        names = [line.partition(b",")[0] + b"," for line in content.splitlines()[1:]]
        if names != sorted(names):
            yield f"{table}.csv: the lines are not sorted as the look-up searches them"


def order_of(release: str) -> list[int]:
    """What sorts releases: 2.1.0rc1, 2.1.0, 2.1.0.post4."""
    numbers = [int(number) for number in re.findall(r"\d+", release)]
    return [*numbers[:3], -1 if "rc" in release else 0, *numbers[3:]]


def is_release(text: str) -> bool:
    """Whether a text is such a release, and no build of one's own."""
    return re.fullmatch(_RELEASE_CELLS["torch_npu"], text) is not None


def _releases(read: Records) -> Iterator[str]:
    """The words of ``releases.csv``, its order, and what the rows of one torch or CANN share."""
    before: list[int] = []
    of_torch: dict[str, tuple[str, ...]] = {}
    of_cann: dict[str, str] = {}
    for record in read["releases"]:
        name, torch, cann = record["torch_npu"], record["torch"], record["cann"]
        wrong = [
            column for column, words in _RELEASE_CELLS.items() if not re.fullmatch(words, record[column])
        ]
        for column in wrong:
            yield f"releases.csv: {name}: {column} is {record[column]!r}"
        if wrong:
            continue
        order = order_of(name)
        if order[:3] != [int(number) for number in torch.split(".")]:
            yield f"releases.csv: {name} is not for torch {torch}"
        if order <= before:
            yield f"releases.csv: {name} is not in the order of versions"
        before = order
        same = tuple(record[column] for column in ("python", "torchvision", "torchaudio"))
        if of_torch.setdefault(torch, same) != same:
            words = "Python, torchvision or torchaudio differ from those of torch"
            yield f"releases.csv: {name}: {words} {torch}"
        if of_cann.setdefault(cann, record["driver"]) != record["driver"]:
            yield f"releases.csv: {name}: the driver differs from that of CANN {cann}"


def _versions(read: Records) -> Iterator[str]:
    numbers = []
    for record in read["versions"]:
        if not re.fullmatch(r"\d+\.\d+\.\d+", record["torch"]):
            yield f"versions.csv: {record['torch']!r} is no torch version"
            return
        numbers.append(tables.as_tuple(record["torch"]))
        if not record["evidence"].split() or not set(record["evidence"].split()) <= _EVIDENCE:
            yield f"versions.csv: torch {record['torch']}: the evidence is {record['evidence']!r}"
        if ("wheel" in record["evidence"].split()) != bool(record["npu_wheel"]):
            yield f"versions.csv: torch {record['torch']}: evidence and npu_wheel do not agree"
    if numbers != sorted(set(numbers)):
        yield "versions.csv: the versions are not in order"
    if not any("docs" in record["evidence"] for record in read["versions"]):
        yield "versions.csv: no version has documents"


def _references(read: Records) -> Iterator[str]:
    apis = {record["api"] for record in read["api_support"]}
    for record in read["aliases"]:
        if record["api"] not in apis:
            yield f"aliases.csv: {record['alias']} leads to {record['api']}, which api_support.csv has not"
    operators = {record["op"].partition(".")[0] for record in read["kernels"]}
    operators |= {record["operator"].partition(".")[0] for record in read["native_functions"]}
    for record in read["composed"]:
        words = f"{record['operators']} {record['sometimes']} {record['backward']}".split()
        for operator in {word.partition(".")[0] for word in words} - operators:
            yield f"composed.csv: {record['api']}: kernels.csv has no operator {operator}"
    order = [record["torch"] for record in read["versions"]]
    held: dict[str, int] = {}
    for record in read["npu_names"]:
        inside = writing.inside(record["from"], record["to"], order)
        held[record["cuda_name"]] = held.get(record["cuda_name"], 0) + len(inside)
    for name, count in held.items():
        if count != len(order):
            yield f"npu_names.csv: {name} has rows for {count} of {len(order)} versions"


def _names(read: Records) -> Iterator[str]:
    for record in read["npu_names"]:
        name = record["npu_name"]
        if name.startswith("torch_npu.npu.") or (name and not re.match(r"torch(\.|_)(npu|profiler)\b", name)):
            yield f"npu_names.csv: {record['cuda_name']}: {name} is no attribute form (torch.npu.…)"
        if not name and not record["advice"]:
            yield f"npu_names.csv: {record['cuda_name']} has neither an NPU name nor advice"
    for record in read["env_vars"]:
        if bool(record["npu_name"]) != bool(record["same_values"]):
            yield f"env_vars.csv: {record['name']}: same_values belongs to an NPU name, and only to one"
        if not record["npu_name"] and not record["advice"]:
            yield f"env_vars.csv: {record['name']} has neither an NPU name nor advice"
        if not re.fullmatch(r"(\d+-\d+(/\d+)?)?", record["values"]):
            yield f"env_vars.csv: {record['name']}: values is {record['values']!r}, not such as 0-252/4"


def _limits(read: Records) -> Iterator[str]:
    codes = {record["code"] for record in read["limits"]}
    seen = set()
    for record in read["api_support"]:
        for limit in record["limits"].split():
            code = limit.partition(":")[0] + (":" if ":" in limit else "")
            if code not in codes and code not in seen:
                seen.add(code)
                yield f"api_support.csv: {record['api']}: the limit {limit} is not in limits.csv"
        if not set(record["hardware"].split()) <= set(HARDWARE):
            yield f"api_support.csv: {record['api']}: hardware {record['hardware']!r} is not known"


def _natives(read: Records) -> Iterator[str]:
    operators = {record["operator"] for record in read["native_functions"]} | {"composite", "cpu", "none"}
    for record in read["native_functions"]:
        if record["kind"] not in operators:
            made = f"{record['operator']} is made from {record['kind']}"
            yield f"native_functions.csv: {made}, which is not in the table"


def _torch(read: Records) -> Iterator[str]:
    versions = [tables.as_tuple(record["torch"]) for record in read["torch_wheels"]]
    if versions != sorted(set(versions)):
        yield "torch_wheels.csv: the versions are not in order"
    known = {record["torch"] for record in read["torch_wheels"]}
    names = {record["name"] for record in read["torch_names"]}
    for record in read["torch_names"]:
        for other in set(record["of"].split()) - names - {"?"}:
            yield f"torch_names.csv: {record['name']} is of {other}, which is not in the table"
        for word in record["parameters"].split():
            ends = word.partition("@")[2].partition("-")[::2]
            if not _WORD.fullmatch(word) or set(ends) - known - {""}:
                yield f"torch_names.csv: {record['name']}: {word} is no parameter with its versions"


if __name__ == "__main__":
    found_problems = problems(Path(sys.argv[1]) if sys.argv[1:] else tables.in_force())
    print("\n".join(found_problems) or "the tables are consistent")
    sys.exit(bool(found_problems))
