"""What decides which findings a file has: its rules, and what a process is told about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from migrator.files.errors import shown
from migrator.lint.options import ConfigError, Options, rule_choice, torch_version
from migrator.run.cache import digest


@dataclass(frozen=True)
class RuleSet:
    """What decides which findings there are, beside the files themselves.

    ``content`` is a digest of the rule packs ``rules``.
    ``mentioned`` are the codes of per-file-ignores, fixable and unfixable: they are checked with the rest.
    With ``noqa`` off, comments suppress nothing.
    """

    version: str
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    rules: tuple[str, ...]
    content: str = ""
    mentioned: tuple[str, ...] = ()
    noqa: bool = True
    hardware: str = ""


@dataclass(frozen=True)
class Job:
    """One file: how the user spells it, where it lies, and its name inside the project.

    ``ignored`` are the codes, or beginnings of codes, that do not count in it;
    ``data`` its content where that is not read from the disk.
    """

    path: str
    place: Path
    name: str
    rules: RuleSet
    ignored: tuple[str, ...]
    data: Optional[bytes] = None


def rule_set(options: Options, noqa: bool = True) -> RuleSet:
    """What of the options decides which findings there are. Raises UnknownVersion and ConfigError."""
    mentioned = {code for item in options.per_file_ignores for code in item.codes}
    mentioned.update(code for code in (*options.fixable, *options.unfixable) if code != "ALL")
    return RuleSet(
        version=torch_version(options),
        select=rule_choice(options),
        ignore=options.ignore,
        rules=options.rules,
        content=digest(*map(_pack_bytes, options.rules)).hex() if options.rules else "",
        mentioned=tuple(sorted(mentioned)),
        noqa=noqa,
        hardware=options.hw,
    )


def _pack_bytes(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{shown(file)}: cannot be read: {(error.strerror or str(error)).lower()}"
        ) from None
