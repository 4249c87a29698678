"""What ``npumigrate lint`` prints of a run."""

from __future__ import annotations

import io
import json
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from migrator.files.errors import shown
from migrator.language import _, ngettext
from migrator.lint.checking import rules_of
from migrator.lint.files import CommandLine, Outcome, Target
from migrator.lint.options import Options, rule_set, torch_version
from migrator.report import colors
from migrator.report.formats import FOR_PEOPLE, LintReport, writer
from migrator.report.formats.text import summary

if TYPE_CHECKING:
    from migrator.matchers.packs import Rule


def print_outcome(outcome: Outcome, incomplete: bool) -> None:
    """Print the findings, or the diff of their fixes; ``incomplete``: not all files were looked at.

    Raises CannotWrite for the file that is to hold them.
    """
    line, options = outcome.line, outcome.options
    if line.diff:
        _print_diff(outcome)
        return

    def rules() -> dict[str, Rule]:
        known = rules_of(rule_set(options, not line.ignore_noqa))
        return {code: rule for code, rule in sorted(known.every.items()) if code in known.enabled}

    width = 0  # of a terminal: in a pipe or file lines stay whole
    if sys.stdout.isatty() and not line.output_file:
        from shutil import get_terminal_size

        width = get_terminal_size().columns
    report = LintReport(
        findings=[] if options.fix_only else outcome.found,
        lines=outcome.texts.lines,
        edits=outcome.texts.edits,
        rules=rules,
        color=colors.wanted() if line.color == "auto" and not line.output_file else line.color == "always",
        width=width,
        fixed=outcome.fixed,
        unsafe_fixes=options.unsafe_fixes,
        show_fixes=options.show_fixes,
        fix_only=options.fix_only,
        notes=[*outcome.notes, *([] if incomplete else _version_note(outcome))],
        summary=not line.quiet,
        complete=not (incomplete or line.add_noqa or line.write_baseline),
    )
    write = writer(options.output_format)
    if line.statistics:
        write = partial(_write_statistics, options.output_format)
    if line.output_file:
        file = io.BytesIO()
        stream = io.TextIOWrapper(file, "utf-8", "backslashreplace", newline="\n")
        write(report, stream)
        stream.flush()
        from migrator.files.replacing import replace_file  # most runs write to the standard output

        replace_file(Path(line.output_file), file.getvalue())
    elif line.paths == ("-",) and (options.fix or options.fix_only):
        write(report, sys.stderr)  # the standard output is the fixed text's
    else:
        write(report, sys.stdout)
        sys.stdout.flush()
    if not line.quiet and (options.output_format not in FOR_PEOPLE or line.output_file or line.statistics):
        for note in outcome.notes:
            print(note, file=sys.stderr)


def _version_note(outcome: Outcome) -> list[str]:
    """For which torch version the findings are, and why, where the command line names none."""
    line, options = outcome.line, outcome.options
    if "version" in options.given or line.add_noqa or line.write_baseline:
        return []
    if len(outcome.versions) > 1:
        return [
            _("Targets: torch {versions}. Override with -v", versions=", ".join(sorted(outcome.versions)))
        ]
    version, why = next(iter(outcome.versions.items()), (torch_version(options), options.version_why))
    if not why and options.version:
        return [_("Target: torch {version} (configured). Override with -v", version=version)]
    newest = _("the newest known version")
    return [_("Target: torch {version} ({why}). Override with -v", version=version, why=why or newest)]


def _print_diff(outcome: Outcome) -> None:
    from migrator.files.replacing import replace_file
    from migrator.files.unified_diff import unified_diff

    line = outcome.line
    text = b"".join(unified_diff(path, before, after) for path, (before, after) in outcome.changed.items())
    if line.output_file:
        replace_file(Path(line.output_file), text)
    else:
        print_bytes(colors.diff_for_terminal(text, line.color))
    count = sum(sum(counts.values()) for counts in outcome.fixed.values())
    if not line.quiet:
        would = ngettext("Would fix {n} finding.", "Would fix {n} findings.", count)
        print(would if count else _("Nothing to fix."), file=sys.stderr)


def print_bytes(data: bytes) -> None:
    """Put bytes as they are on the standard output."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _write_statistics(output_format: str, report: LintReport, stream: TextIO) -> None:
    counts = Counter((item.code, item.rule) for item in report.findings)
    fixable = Counter(
        item.code for item in report.findings if item.fix and (report.unsafe_fixes or item.safely_fixable)
    )
    rows = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    if output_format == "json":
        keys = ("code", "name", "count", "fixable", "fixable_count")
        content = [
            dict(zip(keys, (code, name, count, fixable[code] > 0, fixable[code])))
            for (code, name), count in rows
        ]
        stream.write(json.dumps(content, indent=2) + "\n")
        return
    width = max((len(str(count)) for _, count in rows), default=1)
    for (code, name), count in rows:
        star = "[*]" if fixable[code] == count else "[-]" if fixable[code] else "[ ]"
        stream.write(f"{count:>{width}}  {code}  {star}  {name}\n")
    stream.writelines(f"{line}\n" for line in summary(report._replace(notes=())))


def print_settings(files: Sequence[Target], options: Options, line: CommandLine) -> None:
    """Print the files that would be looked at, or the settings for the first; ``options`` without any."""
    if line.show_files:
        for target in files:
            print(shown(target.place))
        return
    if files:
        print(f"# Settings for {shown(files[0].place)}")
        options = files[0].options
    print(f"# from {shown(options.origin)}" if options.origin else "# no configuration file")
    for name, value in options._asdict().items():  # as a configuration file would say them
        if name in ("root", "origin", "extended", "given", "version_why", "overrides"):
            continue
        if name == "version":
            value = torch_version(options)
        elif name == "exclude":
            value = value.patterns
        elif name == "extend_exclude":
            value = [pattern for each in value for pattern in each.patterns]
        said = json.dumps(value, ensure_ascii=False)
        if name == "per_file_ignores":
            ignores = (f"{json.dumps(each.patterns[0])} = {json.dumps(each.values)}" for each in value)
            said = f"{{{', '.join(ignores)}}}"
        print(f"{name.replace('_', '-')} = {said}")
