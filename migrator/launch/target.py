"""A launcher target is a function that takes what to start and gives the files that start it.

Here are ``run_distributed_npu.sh``, the launcher of a migrated project, ``run_mindspore_npu.sh``, which
starts a program of MindSpore by msrun or by HCCL's rank table, and ModelArts' boot file, with the
configuration of what it copies; their templates are in ``reports/launcher``. What msrun and MindSpore read:
``parallel/cluster`` and ``communication/management.py`` of MindSpore 2.10.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from migrator.api_support.versions import TorchVersion, in_range
from migrator.data_folders import data_folder, reports_yaml
from migrator.files.document import is_notebook
from migrator.files.errors import SourceError, shown
from migrator.files.output import OutputTree, add
from migrator.files.source import text_below
from migrator.language import N_, MessageError, _
from migrator.launch.fault_texts import fault_texts
from migrator.light import Frozen
from migrator.project.entry import Candidate, has_relative_imports
from migrator.project.frameworks import NAMES, TORCH, names_of, other_framework, why_not_started
from migrator.project.module_names import Read
from migrator.project.start_ways import StartWay, start_ways


class Start(Frozen):
    """What to start: ``entry``, a script below the project's folder.

    Where it imports relatively it is started as ``module`` of its package, from the folder ``module_root``
    above that. ``ways``: how the ranks of the project's scripts come to be, as far as it is known.
    ``variables``, as ``variables.yaml`` has them, are set where the user has not set them.
    """

    entry: str
    module: str = ""
    module_root: str = ""
    ways: Mapping[str, StartWay] = field(default_factory=dict)
    variables: tuple[Mapping[str, str], ...] = ()

    @property
    def way(self) -> StartWay | None:
        """How the ranks of ``entry`` come to be."""
        return self.ways.get(self.entry)


class Launch(NamedTuple):
    """What starts it: ``files`` by their paths below the folder that they are for, and lines for a person."""

    files: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text of a target with one file."""
        (text,) = self.files.values()
        return text


def start_of(
    entry: str,
    relative_imports: bool,
    exists: Callable[[str], bool],
    ways: Mapping[str, StartWay],
    version: TorchVersion | None = None,
) -> Start:
    """What starts a script; ``exists`` tells which ``__init__.py`` there are.

    It is no module where the file lies in no package, or its path cannot be a name.
    """
    path = PurePosixPath(entry)
    folder = path.parent
    while relative_imports and folder.name and exists(str(folder / "__init__.py")):
        folder = folder.parent
    parts = path.with_suffix("").relative_to(folder).parts
    is_module = relative_imports and len(parts) > 1 and all(part.isidentifier() for part in parts)
    module, root = (".".join(parts), str(folder)) if is_module else ("", "")
    return Start(entry, module, root, ways, tuple(variables(version)))


def variables(version: TorchVersion | None = None) -> list[dict[str, str]]:
    """The variables of ``variables.yaml`` for a torch version; without one, those for every version."""
    listed: list[dict[str, str]] = reports_yaml("launcher/variables.yaml")
    if version is None:
        return [variable for variable in listed if "versions" not in variable]
    return [variable for variable in listed if in_range(variable.get("versions", ""), version.tuple)]


def template(name: str) -> str:
    """The text of a file in ``reports/launcher``."""
    return (data_folder("reports") / "launcher" / name).read_text(encoding="utf-8")


def filled(name: str, values: Mapping[str, str]) -> str:
    """The text of a template with values, already quoted for its language, in the places of its marks.

    All are put in at once: what a value holds is never taken for a mark.
    """
    marks = re.compile("|".join(map(re.escape, values)))
    return marks.sub(lambda mark: values[mark.group()], template(name))


# -- the launcher of a migrated project, and MindSpore's ---------------------

NAME = "run_distributed_npu.sh"
_OF_MINDSPORE = "run_mindspore_npu.sh"
_FAULTS = ("set-env-missing", "hccl-missing", "no-device", "device-permission")
_DEVICE = {"file": "/dev/davinci_manager", "group": "HwHiAiUser"}


def run_script(start: Start) -> Launch:
    """The script that starts it, for the project's folder."""
    cases = ""
    for script, way in start.ways.items():
        options = f" program_options=({shlex.join(way.options)})" if way.options else ""
        names = f" rank_names={way.variables}" if way.variables else ""
        cases += f"  {shlex.quote(script)}) ranks_by={way.ranks}{options}{names} ;;\n"
    defaults = ((one["why"], one["name"], shlex.quote(one["value"])) for one in start.variables)
    settings = "\n".join(f"# {why}\nset_default {name} {value}" for why, name, value in defaults)
    faults = {f"@{name.upper().replace('-', '_')}@": fault_texts()[name] for name in _FAULTS}
    values = {
        "@ENTRY@": shlex.quote(start.entry),
        "@MODULE@": shlex.quote(start.module),
        "@MODULE_ROOT@": shlex.quote(start.module_root),
        "@WAYS@": cases,
        "@VARIABLES@": f"{settings}\n",
        **{mark: shlex.quote(fault.line(**_DEVICE)) for mark, fault in faults.items()},
    }
    return Launch({NAME: filled(NAME, values)})


def rank_options(ranks: object, hosts: int, host: object, address: str, port: object) -> list[str]:
    """The script's options for one of some hosts: ``--nproc 8 --nnodes 2 …``."""
    options = ["--nproc", str(ranks)]
    if hosts > 1:
        options += ["--nnodes", str(hosts), "--node-rank", str(host)]
        options += ["--master-addr", address, "--master-port", str(port)]
    return options


def mindspore_script(entry: str) -> Launch:
    """The script for the project's folder that starts the ranks of ``entry``, a program of MindSpore."""
    shown = "".join(char if char.isprintable() else "?" for char in entry)
    values = {"@NAME@": shown, "@ENTRY@": shlex.quote(entry)}
    return Launch({_OF_MINDSPORE: filled(_OF_MINDSPORE, values)})


# -- ModelArts ---------------------------------------------------------------

BOOT = "modelarts_boot.py"
CONFIG = "ascend_modelarts_function/path_mapping_config.py"
_MANAGER = "ascend_modelarts_function/modelarts_path_manager.py"
_OBJECT = re.compile(r"(?:obs|s3)://[^/\s]+(?:/.*)?\Z")
_FORMS = {"--map": "obs://bucket/path=LOCAL", "--output": "LOCAL=obs://bucket/path"}


# A path that the script uses, and the place in object storage that is copied to it or from it.
PathPair = tuple[str, str]


def boot_file(start: Start, inputs: Sequence[PathPair] = (), outputs: Sequence[PathPair] = ()) -> Launch:
    """The boot file, for the project's folder, and the path-mapping adapter where something is copied.

    Raises MessageError for a local path that is given twice.
    """
    values = {
        '"@ENTRY@"': _literal(start.entry),
        '"@MODULE@"': _literal(start.module),
        '"@MODULE_ROOT@"': _literal(start.module_root),
        "{}  # @VARIABLES@": _dictionary({one["name"]: one["value"] for one in start.variables}),
        "[]  # @OPTIONS@": json.dumps(start.way.options if start.way else []),
        "False  # @STARTS_RANKS@": f"{start.way is not None and start.way.ranks == 'program'}  # ",
    }
    files = {BOOT: filled(BOOT, values)}
    if not inputs and not outputs:
        return Launch(files, (_("nothing is copied without --map and --output"),))
    lines = ""
    for part, option, pairs in (("input", "--map", inputs), ("output", "--output", outputs)):
        paths: dict[str, str] = {}
        for local, remote in pairs:
            if local in paths:
                raise MessageError("{option}: {local} is given twice", option=option, local=local)
            paths[local] = remote
        lines += f'    "{part}": {_dictionary(paths, 4)},\n'
    text = filled(CONFIG, {"{}  # @CONFIG@": f"{{\n{lines}}}"})
    return Launch({**files, CONFIG: text, _MANAGER: template(_MANAGER)})


def parse_pair(option: str, text: str) -> PathPair:
    """``obs://bucket/data=/cache/data`` of ``--map``, and ``--output`` the other way. Raises MessageError."""
    form = _FORMS[option]
    first, sign, second = text.partition("=")
    if not sign or not first or not second:
        raise MessageError("{option} {text}: it should be {form}", option=option, text=text, form=form)
    if "=" in second:
        said = N_("{option} {text}: ambiguous because of several =; write it into {config}")
        raise MessageError(said, option=option, text=text, config=CONFIG)
    local, remote = (first, second) if form.startswith("LOCAL") else (second, first)
    place = f"{option} {text}"
    if "://" in local:
        raise MessageError("{place}: {local} should be the local path", place=place, local=local)
    if not (_OBJECT.match(remote) or remote.startswith(("/", "file:///"))):
        said = N_("{place}: {remote} is not obs://bucket/path (or s3://), file:///path or an absolute path")
        raise MessageError(said, place=place, remote=remote)
    return local, remote


def _dictionary(content: Mapping[str, str], indent: int = 0) -> str:
    if not content:
        return "{}"
    inner = "".join(f"{' ' * indent}    {_literal(k)}: {_literal(v)},\n" for k, v in content.items())
    return f"{{\n{inner}{' ' * indent}}}"


def _literal(text: str) -> str:
    """A Python literal. Bytes of a file name that are not UTF-8 become escapes."""
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()


_MOST = 30  # scripts of which the launcher knows how they are started
_RANKS = {
    "none": N_(" with one rank: no use of ranks was found"),
    "unseen": N_(" with one rank: no training loop was found in the project (--nproc N)"),
    "program": N_(", which starts its own ranks"),
}


class Launcher(Frozen):
    """What became of the launcher. ``entry`` is empty where there is none, ``others`` may be meant as well.

    ``way`` is how its ranks come to be. ``kept``: the project has a file of that name, which stays.
    ``frameworks`` are those of the project's programs that are not PyTorch's.
    """

    entry: str
    others: tuple[str, ...] = ()
    kept: bool = False
    way: StartWay | None = None
    frameworks: tuple[str, ...] = ()

    def line(self) -> str:
        """What the user reads of it."""
        if self.kept:
            return _("{name} belongs to the project: left unchanged", name=NAME)
        if not self.entry and self.frameworks:
            names = names_of(self.frameworks)
            said = _("no PyTorch training script found; found programs of {names}", names=names)
            start = _("npumigrate launch mindspore -o RESULT -m FILE writes a script that starts one")
            return said + _("; ") + start if "mindspore" in self.frameworks else said
        if not self.entry:
            return _("no training script was found: give it with -m FILE")
        others = _(" (other candidates: {others}; -m FILE)", others=len(self.others)) if self.others else ""
        ranks = _(_RANKS.get(self.way.ranks, "")) if self.way else ""
        starts = N_("bash {name} starts {entry}{ranks}{others}")
        return _(starts, name=NAME, entry=shown(self.entry), ranks=ranks, others=others)


def add_launcher(
    tree: OutputTree,
    candidates: Sequence[Candidate],
    main: str | None,
    read: Read,
    mended: bool,
    version: TorchVersion,
    frameworks: Sequence[str] = (),
    seen: Callable[[int], object] = lambda count: None,
) -> Launcher:
    """Write ``run_distributed_npu.sh`` for the script ``main``, or for the first of ``candidates``.

    ``read``, ``mended`` and ``seen`` are what ``start_ways`` takes, ``frameworks`` those of programs that are
    not PyTorch's. A file of that name in the project stays. Raises what ``chosen_script`` raises.
    """
    entry, others = chosen_script(tree.source, main, candidates), tuple(one.name for one in candidates)
    if not entry:
        return Launcher("", frameworks=tuple(frameworks))
    if os.path.lexists(os.path.join(tree.building, NAME)):
        return Launcher(entry, kept=True)
    start = start_in(tree.source, [entry, *others[:_MOST]], read, mended, version, seen)
    add(tree, NAME, run_script(start).text.encode("utf-8", "surrogateescape"), mode=0o755)
    return Launcher(entry, tuple(name for name in others if name != entry), way=start.way)


def start_in(
    folder: Path,
    scripts: Sequence[str],
    read: Read,
    mended: bool = False,
    version: TorchVersion | None = None,
    seen: Callable[[int], object] = lambda count: None,
) -> Start:
    """What starts the first of some scripts of the project in a folder; how all of them start is known."""
    ways = start_ways(dict.fromkeys(scripts), read, mended, seen)
    relative = has_relative_imports(text_below(folder, scripts[0]) or "")
    return start_of(scripts[0], relative, lambda name: os.path.isfile(folder / name), ways, version)


def chosen_script(
    source: Path, main: str | None, candidates: Sequence[Candidate], framework: str = TORCH
) -> str:
    """The script to start: ``main`` as a path below the project, or the first of ``candidates``, if any.

    ``main`` may be given from the current folder. Raises SourceError where the project holds no such file,
    for a notebook, as none can be started so, and for a program of another framework. A project that is one
    file holds only that.
    """
    if not main:
        return next((one.name for one in candidates), "")
    if is_notebook(main):
        raise SourceError("{main} (-m/--main) is a notebook: ranks start from a script", main=shown(main))
    root = os.path.realpath(source if os.path.isdir(source) else os.path.dirname(source) or ".")
    for path in (os.path.join(root, main), os.path.realpath(main)):
        inside = os.path.relpath(os.path.realpath(path), root)
        held = os.path.isdir(source) or os.path.realpath(path) == os.path.realpath(source)
        if held and os.path.isfile(path) and not inside.startswith(os.pardir + os.sep):
            entry = inside.replace(os.sep, "/")
            found = other_framework(text_below(Path(root), entry) or "")
            if found and framework == TORCH:
                raise SourceError(why_not_started(shown(entry), found))
            if found != framework and framework != TORCH:
                raise SourceError("{entry} does not use {name}", entry=shown(entry), name=NAMES[framework])
            return entry
    raise SourceError("{main} (-m/--main) is not a file in {source}", main=shown(main), source=shown(source))
