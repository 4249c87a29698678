"""Files that npumigrate is given: baselines, rule packs, rank tables, manifests. Each is read or refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, Optional

import yaml

from migrator.launch import rank_table
from migrator.launch.k8s.cluster import ManifestError, cluster
from migrator.launch.k8s.convert import convert
from migrator.launch.k8s.jobs import read_job
from migrator.lint import baseline, config_files
from migrator.lint.options import ConfigError
from migrator.matchers import packs
from tests.fuzzing.mutations import mutated
from tests.timing import TooSlow, bounded

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "tests" / "launch" / "manifests"
SECONDS = 20.0  # of processor time, for a file of a few KB: what takes longer may never end
# What may stand in the place of any value, or of a key.
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 8, 1.5, 10**30, float("nan"), float("inf"), "", " ", "0", "-1", "cuda"),
    *("\u0663", "1e9", "a\nb", "a: b", "\x1b[31m", "\ud800", "x" * 3000, "(a+)+$", "[", "../../etc/passwd"),
    *([], {}, [[]], [None], [{}], {"": ""}, {"a": {"a": []}}, ["cuda", 0], {"nvidia.com/gpu": 8}),
)


class Kind(NamedTuple):
    """``use`` reads a file and says what does not hold; it may raise ``refused``, and nothing else."""

    file: str
    starts: tuple[str, ...]
    use: Callable[[Path], str]
    refused: type[Exception]
    load: Optional[Callable[[str], Any]] = None
    dump: Callable[[Any], str] = str


def broken(kind: Kind, data: bytes, folder: Path) -> str:
    """What does not hold for a file with these bytes; empty where all does."""
    file = folder / kind.file
    file.write_bytes(data)
    try:
        with bounded(SECONDS):
            return kind.use(file)
    except TooSlow:
        return "takes too long"
    except kind.refused as error:
        return _bad_reason(str(error))
    except Exception as error:
        return f"raises {error!r}"


def _bad_reason(text: str) -> str:
    return "" if text.strip() else "is refused without a reason"


def changed(kind: Kind, text: str, random: Random) -> bytes:
    """A file made from one that is right: its values exchanged, or its characters."""
    if kind.load and random.random() < 0.6:
        content = kind.load(text)
        for _ in range(random.randint(1, 3)):
            content = _exchanged(content, random)
        text = kind.dump(content)
    else:
        text = mutated(text, python=False, random=random)
    return text.encode("utf-8", random.choice(("surrogatepass", "replace", "backslashreplace")))


def _exchanged(content: Any, random: Random) -> Any:
    """The content with one value, key or item exchanged, gone or doubled, at a random place."""
    places = list(_places(content))
    if not places:
        return deepcopy(random.choice(ODD_VALUES))
    holder, key = random.choice(places)
    what = random.randrange(5)
    if what == 0:
        del holder[key]
    elif what == 1 and isinstance(holder, dict):
        new = random.choice([each for each in ODD_VALUES if not isinstance(each, (list, dict))])
        holder[new] = holder.pop(key)
    elif what == 1:
        holder.insert(key, holder[key])
    elif what == 2:
        holder[key] = [holder[key]]
    else:
        other, place = random.choice(places)
        # A copy: what is exchanged in it later must not change the values to choose from, nor hold itself.
        holder[key] = deepcopy(random.choice((*ODD_VALUES, other[place])))
    return content


def _places(content: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    rest = [content]
    while rest:
        holder = rest.pop()
        keys: list[Any] = []
        if isinstance(holder, (dict, list)):
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        found += [(holder, key) for key in keys]
        rest += [holder[key] for key in keys]
    return found


def _baseline(file: Path) -> str:
    held = baseline.read(file)
    new, left = baseline.split([], held, lambda _: (), file.parent)
    baseline.gone(left, file.parent, lambda _file, _rule: True)
    return "gives findings" if new else ""


def _pack(file: Path) -> str:
    return "" if all(rule.code for rule in packs.load(file)) else "a rule has no code"


def _rank_table(file: Path) -> str:
    content = rank_table.parse(file.read_text("utf-8", "replace"))
    found = list(rank_table.problems(content))
    if found:
        return next(filter(None, map(_bad_reason, found)), "")
    servers = rank_table.read(content)
    for form in (rank_table.CURRENT, rank_table.OLDER):
        again = rank_table.parse(rank_table.dump(servers, form))
        if form == rank_table.form_of(content) and rank_table.read(again) != servers:
            return f"another table comes back: {servers}"
    return ""


def _manifest(file: Path) -> str:
    target = cluster()
    found = convert(file.read_text("utf-8", "replace"), file.name, target)
    list(yaml.safe_load_all(found.text))
    again = convert(found.text, file.name, target)
    return "" if again.text == found.text else "a second conversion changes it"


def _job(file: Path) -> str:
    read_job(file.read_text("utf-8", "replace"), file.name)
    return ""


def _hosts(file: Path) -> str:
    rank_table.parse_hostfile(file.read_text("utf-8", "replace"), file.name)
    return ""


def _configuration(file: Path) -> str:
    config_files.read_file(file)
    return ""


def _yaml(content: Any) -> str:
    return yaml.dump(content, sort_keys=False, allow_unicode=True)


def _documents(text: str) -> list[Any]:
    return list(yaml.safe_load_all(text))


def _of_documents(content: Any) -> str:
    return yaml.dump_all(content if isinstance(content, list) else [content], sort_keys=False)


def kinds() -> tuple[Kind, ...]:
    """The kinds, with files that are right to begin with."""
    known = {"a.py": {"NPU100": {"x = torch.cuda.Stream()": 2, "": 1}}, "b/c.sh": {"NPU300": {"a": 1}}}
    held = {"format": 1, "npumigrate": "0", "findings": 4, "files": known}
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast
    files = sorted((ROOT / "rules").rglob("*.yaml"))
    every = [yaml.load(file.read_text("utf-8"), loader) for file in files]
    rules = [_yaml([entry]) for entries in every if isinstance(entries, list) for entry in entries[::7]]
    servers = rank_table.build([rank_table.Host(f"10.0.0.{n}", (0, 1, 2, 3), {}) for n in (1, 2)])
    tables = tuple(rank_table.dump(servers, form) for form in (rank_table.CURRENT, rank_table.OLDER))
    manifests = tuple(file.read_text("utf-8") for file in sorted(MANIFESTS.glob("*.yaml")))
    job = "# a job\nname=a\nimage=b:1\nnpus=8\nreplicas=2\ncommand=python train.py\nenv=A=1\nmemory=64\n"
    settings = (
        'select = ["NPU1", "NPU600"]\nignore = []\nexclude = ["build/**"]\nfix = true\n'
        '[per-file-ignores]\n"tests/*" = ["NPU122"]\n[severity]\nNPU600 = "info"\n'
    )
    argument = {"func_name": "torch.ones", "arg_idx": 0, "arg_new": "x", "arg_keyword": "\U0001d41c"}
    name = {"old_name": "a.b", "new_name": "a.c"}
    vendor = {"rules": {"ArgsModifyRule": [argument], "FuncNameModifyRule": [name]}}
    given = (json.dumps(vendor, ensure_ascii=False),)
    return (
        Kind("vendor.json", given, _pack, packs.RuleError, json.loads, json.dumps),
        Kind("known.json", (json.dumps(held),), _baseline, ConfigError, json.loads, json.dumps),
        Kind("pack.yaml", tuple(rules), _pack, packs.RuleError, yaml.safe_load, _yaml),
        Kind("table.json", tables, _rank_table, rank_table.RankTableError, json.loads, json.dumps),
        Kind("jobs.yaml", manifests, _manifest, ManifestError, _documents, _of_documents),
        Kind("job.txt", (job,), _job, ManifestError),
        Kind("hosts", ("a slots=8\nb slots=4 max-slots=8 # c\n",), _hosts, rank_table.RankTableError),
        Kind("npumigrate.toml", (settings,), _configuration, ConfigError),
    )
