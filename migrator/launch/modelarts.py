"""The boot file of a ModelArts training job, and the configuration of what it copies.

The templates are in ``reports/launcher``: ``modelarts_boot.py`` and ``ascend_modelarts_function``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from migrator.language import N_, MessageError, _
from migrator.launch.target import Launch, Start, filled, template

BOOT = "modelarts_boot.py"
ADAPTER = "ascend_modelarts_function"
CONFIG = f"{ADAPTER}/path_mapping_config.py"
MANAGER = f"{ADAPTER}/modelarts_path_manager.py"
_OBJECT = re.compile(r"(?:obs|s3)://[^/\s]+(?:/.*)?\Z")


_FORMS = {"--map": "obs://bucket/path=LOCAL", "--output": "LOCAL=obs://bucket/path"}


class PathPair(NamedTuple):
    """A path that the script uses, and the place in object storage that is copied to it or from it."""

    local: str
    remote: str


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
    return Launch({**files, **_adapter(inputs, outputs)})


def _adapter(inputs: Sequence[PathPair], outputs: Sequence[PathPair]) -> dict[str, str]:
    """The files of the path-mapping adapter by their paths."""
    lines = ""
    for part, option, pairs in (("input", "--map", inputs), ("output", "--output", outputs)):
        paths: dict[str, str] = {}
        for local, remote in pairs:
            if local in paths:
                raise MessageError("{option}: {local} is given twice", option=option, local=local)
            paths[local] = remote
        lines += f'    "{part}": {_dictionary(paths, 4)},\n'
    text = filled(CONFIG, {"{}  # @CONFIG@": f"{{\n{lines}}}"})
    return {CONFIG: text, MANAGER: template(MANAGER)}


def reads_init_method(text: str) -> bool:
    """Whether a script itself has the option that the PyTorch engine gives."""
    return bool(re.search(r"['\"]--init_method['\"]", text))


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
    return PathPair(local, remote)


def _dictionary(content: Mapping[str, str], indent: int = 0) -> str:
    if not content:
        return "{}"
    inner = "".join(f"{' ' * indent}    {_literal(k)}: {_literal(v)},\n" for k, v in content.items())
    return f"{{\n{inner}{' ' * indent}}}"


def _literal(text: str) -> str:
    """A Python literal. Bytes of a file name that are not UTF-8 become escapes."""
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()
