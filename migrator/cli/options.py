"""Options that several of typer's commands have, each stated once, and what the commands make of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from migrator.cli.ending import say, stop
from migrator.cli.values import Several
from migrator.language import _

Words = Annotated[
    Optional[list[str]], typer.Argument(metavar="SRC", help="Project folder, or one Python file.")
]
Source = Annotated[Optional[str], typer.Option("--input", "-i", metavar="SRC", help="Same as SRC.")]
Version = Annotated[
    Optional[str],
    typer.Option(
        "--version",
        "-v",
        metavar="VERSION",
        help="torch version to run on: 2.6, 1.11.0, …; else the one of its requirements, or the newest.",
    ),
]
Hardware = Annotated[
    Optional[str],
    typer.Option("--hw", metavar="HW", help="Product line: A1, A2, A3 or 950DT; judge APIs for it, too."),
]
Ignore = Annotated[Several, typer.Option("--ignore", metavar="RULES", help="Not these rules.")]
Rules = Annotated[
    Several, typer.Option("--rules", "-r", metavar="FILE", help="A rule pack of your own; may be repeated.")
]
Jobs = Annotated[
    Optional[int],
    typer.Option(
        "--jobs", "-j", metavar="N", min=1, help="Worker processes (default: one per CPU for large projects)."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Print what becomes of each file (stderr).")]
Formats = Annotated[
    Several,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="Build these reports, too: html, md, xlsx, csv, json.",
    ),
]
# Of emulated NPUs.
Devices = Annotated[int, typer.Option("--devices", metavar="N", min=1, max=32, help="Emulated NPUs.")]
Soc = Annotated[str, typer.Option("--soc", metavar="NAME", help="Name that the NPUs report.")]
Memory = Annotated[str, typer.Option("--memory", metavar="SIZE", help="Memory of each NPU: 512MiB, 64GiB, …")]
# Of what is printed, or written to a file.
ToFile = Annotated[
    Optional[Path],
    typer.Option("--output", "-o", metavar="FILE", help="Write there instead of printing."),
]


def one_source(words: Sequence[str], given: Optional[str]) -> Optional[str]:
    """The input, which may be said as a word or with ``--input``; stops where it is said twice."""
    said = [*words, *([given] if given is not None else [])]
    if len(said) > 1:
        stop(_("more than one input: {said}", said=", ".join(said)))
    return said[0] if said else None


def refuse_missing(needed: Mapping[str, Any], command: str) -> None:
    """Stop where one of the options that a command needs was not given."""
    missing = [option for option, value in sorted(needed.items()) if not value]
    if missing:
        stop(
            _(
                "missing: {missing} ({command} --help shows all options)",
                missing=", ".join(missing),
                command=command,
            )
        )


def torch_version(given: Optional[str], source: Optional[str], quiet: bool) -> str:
    """The known torch version that the user names, or else the one that the project's requirements ask for.

    Which one, and why, is told. Raises UnknownVersion.
    """
    from migrator.api_support.versions import UnknownVersion, resolve

    if given:
        return resolve(given).text
    from migrator.project.wanted_versions import chosen_version

    try:
        choice = chosen_version(Path(source or ""))
    except FileNotFoundError as error:  # the folder that NPUMIGRATE_API_DB names
        raise UnknownVersion(str(error)) from None
    if not quiet and os.path.exists(source or ""):
        say(_("torch {version}: {why} (-v VERSION names another)", version=choice.version, why=choice.why))
    return choice.version


def check_common(quiet: bool, verbose: bool, hardware: Optional[str]) -> None:
    """Stop where there is no such product line, or where what is printed is said twice."""
    from migrator.api_support.hardware import HARDWARE

    if quiet and verbose:
        stop(_("--quiet and --verbose exclude each other"))
    if hardware is not None and hardware not in HARDWARE:
        stop(
            _(
                "there is no hardware {hardware!r}: choose one of {hardware2}",
                hardware=hardware,
                hardware2=", ".join(HARDWARE),
            )
        )


def say_what_is_not_used(rule_files: Sequence[str]) -> None:
    """Name the rules of pytorch_gpu2npu.sh's files that have no equivalent, a line for each."""
    if not any(file.endswith(".json") for file in rule_files):
        return
    from migrator.matchers.vendor_rules import not_converted

    for file in rule_files:
        for line in not_converted(Path(file)):
            say(_("{file}: not used: {line}", file=file, line=line))
