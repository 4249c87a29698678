"""What several commands make of their options."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from migrator.cli.ending import say, stop
from migrator.cli.parser import Given
from migrator.command_options import split
from migrator.language import N_, _

if TYPE_CHECKING:
    from migrator.core.settings import Settings


def one_source(words: Sequence[str], given: Optional[str]) -> str:
    """The input, which may be said as a word or with ``--input``; stops where it is said twice."""
    said = [*words, *([given] if given is not None else [])]
    if len(said) > 1:
        stop("more than one input: {said}", said=", ".join(said))
    return said[0] if said else ""


def refuse_missing(needed: Mapping[str, Any], command: str) -> None:
    """Stop where one of the options that a command needs was not given."""
    missing = [option for option, value in sorted(needed.items()) if not value]
    if missing:
        said = N_("missing: {missing} ({command} --help shows all options)")
        stop(said, missing=", ".join(missing), command=command)


def check_common(given: Given) -> None:
    """Stop where there is no such product line, or where what is printed is said twice."""
    from migrator.api_support.verdict_type import HARDWARE

    refuse_together({"--quiet": given.quiet, "--verbose": given.verbose}, ("--quiet", "--verbose"))
    if given.hardware is not None and given.hardware not in HARDWARE:
        said = N_("there is no hardware {hardware!r}: choose one of {hardware2}")
        stop(said, hardware=given.hardware, hardware2=", ".join(HARDWARE))


def refuse_together(given: Mapping[str, Any], *pairs: tuple[str, str]) -> None:
    """Stop where both options of a pair were given."""
    for one, other in pairs:
        if given[one] and given[other]:
            stop("{chosen} and {chosen2} exclude each other", chosen=one, chosen2=other)


def settings_of(given: Given, source: str, **more: Any) -> Settings:
    """The settings of a run, with ``more`` than several commands have.

    The torch version is the one that the user names, or else the one that the project's requirements ask for;
    which one and why is told, and so are the rules of pytorch_gpu2npu.sh's files that have no equivalent.
    Raises UnknownVersion.
    """
    from migrator.api_support.versions import resolve
    from migrator.core.settings import Settings

    if given.version:
        version = resolve(given.version).text
    else:
        from migrator.project.wanted_versions import chosen_version

        version, why = chosen_version(Path(source))
        if not given.quiet and os.path.exists(source):
            say(_("torch {version}: {why} (-v VERSION names another)", version=version, why=why))
    packs = tuple(given.rules or ())
    for file in packs:
        if file.endswith(".json"):
            from migrator.matchers.vendor_rules import not_converted

            for line in not_converted(Path(file)):
                say(_("{file}: not used: {line}", file=file, line=line))
    return Settings(
        version, ignore=split(given.ignore), rule_files=packs, hardware=given.hardware or "", **more
    )
