"""What can be said to ``npumigrate lint``: each option once, by the groups and in the order of its help.

The command line's parser, the configuration files, ``--config KEY=VALUE``, the editors' settings,
the JSON schema and the table in docs/lint.md are made from this. What holds where nobody says anything
stands in ``Options`` for the keys of a configuration, and in ``CommandLine`` for the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from migrator.api_support.hardware import HARDWARE
from migrator.findings.finding import SEVERITIES
from migrator.report.formats import FORMATS

Kind = Literal[
    "choice", "codes", "flag", "ignores", "number", "overrides", "path", "paths", "patterns", "switch", "text"
]


class Option(NamedTuple):
    """One option: ``name`` is its key in a configuration, and with ``--`` before it that of the command line.

    ``help`` is its line in ``--help``, and ``key`` says what it is in a configuration: empty where there
    is no such option, or key. A ``flag`` is given or not; a ``switch`` may also be said no to. ``by_path``
    says that overrides may set it for some files, ``in_editor`` that an editor's settings may have it.
    """

    name: str
    kind: Kind
    metavar: str = ""
    short: str = ""
    help: str = ""
    key: str = ""
    choices: tuple[str, ...] = ()
    by_path: bool = False
    in_editor: bool = False


_SEVERITIES = tuple(reversed(SEVERITIES))

OPTIONS: Mapping[str, tuple[Option, ...]] = {
    "": (
        Option(
            "extend",
            "path",
            key="Another configuration file: what it says holds where this one says nothing else.",
        ),
        Option(
            "version",
            "text",
            metavar="VERSION",
            short="-v",
            help="torch version to run on (default: the one of the requirements, or the newest)",
            key="The torch version that the project will run on, such as '2.6'.",
            by_path=True,
            in_editor=True,
        ),
        Option(
            "hw",
            "choice",
            metavar="HW",
            help="product line: A1, A2, A3 or 950DT (default: none in particular)",
            key="The product line that it will run on: APIs are judged for it, too.",
            choices=HARDWARE,
            by_path=True,
            in_editor=True,
        ),
        Option("overrides", "overrides", key="Options for some paths only."),
    ),
    "fixing": (
        Option("fix", "switch", help="make the safe fixes, in place", key="Whether safe fixes are made."),
        Option(
            "unsafe-fixes",
            "switch",
            help="make unsafe fixes, too, with --fix or --diff",
            key="Whether unsafe fixes count as fixes, too.",
            in_editor=True,
        ),
        Option("show-fixes", "switch", help="list the fixes made", key="List the fixes that were made."),
        Option(
            "fixable",
            "codes",
            metavar="RULES",
            help="make the fixes of these rules only",
            key="The rules whose fixes are made: codes, their beginnings, or ALL.",
        ),
        Option(
            "unfixable",
            "codes",
            metavar="RULES",
            help="make no fixes of these rules",
            key="The rules whose fixes are not made, but for longer codes in fixable.",
        ),
        Option(
            "fix-only",
            "switch",
            help="make the fixes and do not report what remains",
            key="Make fixes, and do not report what remains.",
        ),
        Option("diff", "flag", help="print what --fix would do and write nothing"),
    ),
    "rules": (
        Option(
            "select",
            "codes",
            metavar="RULES",
            help="only these: NPU101,NPU2 or ALL (the default)",
            key="The rules to use: codes, their beginnings, or ALL.",
            by_path=True,
            in_editor=True,
        ),
        Option(
            "ignore",
            "codes",
            metavar="RULES",
            help="not these rules",
            key="The rules not to use, but for longer codes in select.",
            by_path=True,
            in_editor=True,
        ),
        Option(
            "extend-select",
            "codes",
            metavar="RULES",
            help="these rules, too",
            key="More rules to use, beside those of select.",
            by_path=True,
            in_editor=True,
        ),
        Option(
            "per-file-ignores",
            "ignores",
            metavar="GLOB:RULES",
            help="rules not used in some files",
            key="Rules that are not used in the files that a glob fits.",
            in_editor=True,
        ),
        Option(
            "extend-per-file-ignores",
            "ignores",
            metavar="GLOB:RULES",
            help="more of these",
            key="More such rules, beside those of per-file-ignores.",
        ),
        Option(
            "rules",
            "paths",
            metavar="FILE",
            short="-r",
            help="a rule pack of your own",
            key="Rule packs of your own, beside the built-in ones.",
            in_editor=True,
        ),
        Option(
            "severity",
            "choice",
            metavar="LEVEL",
            help="show nothing below blocker, error, warning or info (the default)",
            key="Show nothing below this severity.",
            choices=_SEVERITIES,
            in_editor=True,
        ),
        Option(
            "fail-on",
            "choice",
            metavar="LEVEL",
            help="exit with 1 from this severity on (default: info)",
            key="Findings of this severity and above make the exit code 1.",
            choices=_SEVERITIES,
        ),
        Option("ignore-noqa", "flag", help="take no notice of comments that suppress findings"),
        Option("add-noqa", "flag", help="add a noqa comment for each finding"),
        Option(
            "baseline",
            "path",
            metavar="FILE",
            help="leave out the findings of this file",
            key="File with the findings that are known and do not count.",
            in_editor=True,
        ),
        Option("write-baseline", "path", metavar="FILE", help="write all findings to this file"),
        Option(
            "diff-base", "text", metavar="REV", help="only findings on lines changed since a git revision"
        ),
    ),
    "files": (
        Option(
            "exclude",
            "patterns",
            metavar="GLOB",
            help="leave these out; replaces the configured ones",
            key="Files and folders that are not looked at; replaces the default.",
            in_editor=True,
        ),
        Option(
            "extend-exclude",
            "patterns",
            metavar="GLOB",
            help="leave these out as well",
            key="More files and folders that are not looked at.",
            in_editor=True,
        ),
        Option(
            "respect-gitignore",
            "switch",
            help="leave out what .gitignore names (the default)",
            key="Whether what .gitignore names is left out.",
        ),
        Option(
            "force-exclude",
            "switch",
            help="leave out excluded files even if they are named",
            key="Whether exclude also holds for files that are named on the command line.",
        ),
        Option("stdin-filename", "text", metavar="NAME", help="the name of what comes from stdin"),
    ),
    "output": (
        Option(
            "output-format",
            "choice",
            metavar="FORMAT",
            help=f"{FORMATS[0]} (the default), {', '.join(FORMATS[1:])}",
            key="How findings are printed.",
            choices=FORMATS,
        ),
        Option("output-file", "path", metavar="FILE", short="-o", help="write the findings to a file"),
        Option("statistics", "flag", help="print how often each rule finds something"),
        Option("color", "choice", help="colours (default: auto)", choices=("auto", "always", "never")),
        Option("quiet", "flag", short="-q", help="print findings only"),
        Option("silent", "flag", short="-s", help="print nothing but errors"),
        Option("show-settings", "flag", help="print the settings and stop"),
        Option("show-files", "flag", help="print the files to lint and stop"),
        Option("exit-zero", "flag", short="-e", help="exit with 0 even if there are findings"),
        Option("exit-non-zero-on-fix", "flag", help="exit with 1 if something was fixed"),
    ),
    "running": (
        Option("config", "paths", metavar="FILE|KEY=VALUE", help="a configuration file, or one setting"),
        Option("isolated", "flag", help="read no configuration file"),
        Option("no-cache", "flag", short="-n", help="read and write no cache"),
        Option(
            "cache-dir",
            "path",
            metavar="DIR",
            help="folder of the cache",
            key="Folder of the cache; .npumigrate_cache beside the configuration without it.",
        ),
        Option(
            "jobs",
            "number",
            metavar="N",
            short="-j",
            help="worker processes (default: one per CPU for large projects)",
        ),
        Option("watch", "flag", short="-w", help="lint again whenever a file changes"),
    ),
}
KEYS: Mapping[str, Option] = {
    option.name: option for group in OPTIONS.values() for option in group if option.key
}
