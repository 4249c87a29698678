"""What ``npumigrate rule`` says of rules: Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from migrator.data_folders import reports_yaml
from migrator.language import N_, _
from migrator.matchers.packs import Rule
from migrator.project.frameworks import TORCH, names_of

_IN_JSON = "code name summary kind severity status fix opt_in versions why advice".split()


def as_markdown(rule: Rule, level: int = 1) -> str:
    """One rule as a chapter whose heading has ``level`` signs."""
    versions = _(", for torch {versions}", versions=rule.versions) if rule.versions else ""
    if rule.framework != (TORCH,):
        versions += _(", for {frameworks}", frameworks=names_of(rule.framework))
    fix = _(reports_yaml("rules.yaml")["fixes"][rule.fix])
    asked = _(" Off by default: `--extend-select`.") if rule.opt_in else ""
    summary, severity = rule.summary.rstrip(".。"), _(rule.severity.capitalize())
    about = N_("{summary}. {severity}, {fix}{versions}.")
    parts = [
        f"{'#' * level} {rule.code}: {rule.name}",
        _(about, summary=summary, severity=severity, fix=fix, versions=versions) + asked,
    ]
    if rule.why:
        parts.append(rule.why.strip())
    if rule.advice:
        parts.append(_("What to do: {advice}", advice=rule.advice))
    parts += [_example(example) for example in rule.examples]
    if rule.references:
        links = (f"<{text}>" if text.startswith("https://") else text for text in rule.references)
        parts.append(_("References:") + "\n\n" + "\n".join(f"- {link}" for link in links))
    return "\n\n".join(parts) + "\n"


def tables_as_markdown(rules: Sequence[Rule], link: str) -> str:
    """The rules in tables, a group in each. In ``link``, {code} and {anchor} stand for the rule's own.

    The anchor is the name that GitHub gives to the rule's heading.
    """
    parts = [_(reports_yaml("rules.yaml")["head"].strip()) + "\n"]
    for codes, title in reports_yaml("rules.yaml")["groups"].items():
        group = [rule for rule in rules if fnmatchcase(rule.code, codes)]
        if group:
            parts.append(f"## {_(title)}\n\n{_('| code | what | fix |')}\n| --- | --- | --- |")
            for rule in group:
                place = link.format(code=rule.code, anchor=f"{rule.code}-{rule.name}".lower())
                summary = rule.summary.replace("|", "\\|")
                parts.append(f"| [{rule.code}]({place}) | {summary} | {_(rule.fix)} |")
            parts[-1] += "\n"
    return "\n".join(parts)


def as_json(rules: Iterable[Rule]) -> str:
    """The rules as a JSON array, in their order."""
    found = []
    for rule in rules:
        content: dict[str, Any] = {name: getattr(rule, name) for name in _IN_JSON}
        content.update((name, None) for name in ("status", "versions", "advice") if not content[name])
        shown = ("before", "after", "reported", "unchanged", "version")
        examples = [{key: str(each[key]) for key in shown if key in each} for each in rule.examples]
        found.append({**content, "examples": examples, "references": list(rule.references)})
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def _example(example: Mapping[str, Any]) -> str:
    version = _(", torch {example}", example=example["version"]) if "version" in example else ""
    titles = {"reported": N_("Reported"), "unchanged": N_("Left unchanged"), "before": N_("Before")}
    key = next(key for key in titles if key in example)
    changed = key == "before" and example["before"] != example["after"]
    title = titles["reported" if key == "before" and not changed else key]
    text = f"{_('{title}:', title=_(title) + version)}\n\n{_code(example[key])}"
    return f"{text}\n\n{_('{title}:', title=_('After'))}\n\n{_code(example['after'])}" if changed else text


def _code(text: str) -> str:
    fence = "````" if "```" in text else "```"
    lines = "\n".join(text.rstrip().splitlines())  # an example may have other newlines
    return f"{fence}python\n{lines}\n{fence}"
