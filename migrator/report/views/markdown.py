"""``report.md``: a run on a page of Markdown, short enough for the comment on a pull request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from migrator.report.views.estimates import counts_of, effort_of, readiness
from migrator.report.views.model import groups_of, verdict_of
from migrator.report.views.run import Run
from migrator.report.views.texts import Texts

if TYPE_CHECKING:
    from migrator.matchers.packs import Rule

_GROUPS = 12
_RULES = 12
_PLACES = 3


def markdown(run: Run, rules: Mapping[str, Rule]) -> str:
    """The text of a run. What comes from its files is code or escaped: it cannot be markup."""
    texts = Texts()
    counts = counts_of(run)
    percent, _, _ = readiness(counts)
    effort, _ = effort_of(run)
    verdict, _ = verdict_of(run, counts, texts)
    title = texts("title", name=_plain(run.name), kind=texts.about("kinds", run.kind))
    files = run.summary["files"]
    changed = files["changed"] + files.get("other_changed", 0)
    numbers = (
        *(f"{percent} %", changed, counts.safe + counts.unsafe, counts.unsafe),
        *(counts.open["blocker"], counts.open["error"], counts.open["warning"]),
        texts.duration(effort.total),
    )
    lines = [f"## {title}", "", f"**{_plain(verdict)}**", "", f"torch {run.summary['torch']}", ""]
    lines += [*_head(texts("md_numbers")), _row(numbers), ""]
    groups = groups_of(run, rules)
    if groups:
        lines += [f"### {texts('md_review')}", "", *_head(texts("md_head"))]
        for group in groups[:_GROUPS]:
            places = [place for said in group.said for place in said.places]
            where = ", ".join(_code(f"{file}:{line}") for file, line in places[:_PLACES])
            more = f", … ({group.count})" if group.count > _PLACES else ""
            level = texts.about("severities", group.severity)
            lines.append(_row((level, group.code, _cell(group.title), where + more)))
        if len(groups) > _GROUPS:
            lines += ["", texts("md_more", len(groups) - _GROUPS)]
        lines.append("")
    by_rule = run.summary["changes"]["by_rule"]
    if by_rule:
        lines += [f"### {texts('md_changes')}", "", *_head(texts("md_changes_head"))]
        ordered = sorted(by_rule.items(), key=lambda item: (-item[1]["total"], item[0]))
        for code, each in ordered[:_RULES]:
            said = rules[code].summary if code in rules else each["name"]
            lines.append(_row((code, _cell(said), each["total"], each["unsafe"] or "")))
        if len(ordered) > _RULES:
            lines += ["", texts("md_more", len(ordered) - _RULES)]
        lines.append("")
    reviewed, manual = (texts.duration(effort.minutes[kind]) for kind in ("reviewed", "manual"))
    return "\n".join([*lines, texts("md_effort", reviewed=reviewed, manual=manual), ""])


def _head(text: str) -> list[str]:
    return [text, "|" + " --- |" * (text.count("|") - 1)]


def _row(cells: tuple[object, ...]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _cell(text: str) -> str:
    """A rule's text, whose backquotes are Markdown's own."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _plain(text: str) -> str:
    return "".join(f"\\{char}" if char in "\\`*_[]<>|#@!~" else char for char in " ".join(text.split()))


def _code(text: str) -> str:
    """A text as code, whatever it holds: with a fence longer than any in it."""
    fence = "`"
    while fence in text:
        fence += "`"
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{' '.join(text.split())}{pad}{fence}".replace("|", "\\|")
