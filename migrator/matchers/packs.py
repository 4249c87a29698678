"""Rule packs: read, checked, selected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

from migrator.data_folders import data_folder
from migrator.files.errors import reason, shown

KINDS = (
    "name",
    "import",
    "method",
    "string",
    "argument",
    "attribute",
    "env",
    "text",
    "call",
    "pattern",
    "structural",
)
FIXES = ("safe", "unsafe", "none")
SEVERITIES = ("error", "warning", "info")
STATUSES = ("", "absent", "unsupported", "fallback", "partial", "unknown")
_FIELDS = frozenset(
    "code name summary kind match except replace versions fix severity status why message advice words"
    " options examples references opt_in".split()
)
_EXAMPLE_FIELDS = (
    "before",
    "after",
    "unchanged",
    "reported",
    "version",
    "setup",
    "use",
    "differs",
    "not_run",
)
_EXAMPLE_KINDS = ({"before", "after"}, {"unchanged"}, {"reported"})
_CODE = re.compile(r"[A-Z]{2,8}\d{3,4}\Z")
_CONDITION = re.compile(r"(>=|<=|==|>|<)\s*(\d+(?:\.\d+)*)\Z")


class RuleError(ValueError):
    """A rule pack, or a choice of rules, that cannot be used; its text is the user's line."""


@dataclass(frozen=True)
class Rule:
    """One rule of a pack, as docs/rule_format.md describes it."""

    code: str
    name: str
    summary: str
    kind: str
    match: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    replace: str = ""
    versions: str = ""
    fix: str = "none"
    severity: str = "warning"
    status: str = ""
    why: str = ""
    message: str = ""
    advice: str = ""
    words: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    examples: tuple[Mapping[str, Any], ...] = ()
    opt_in: bool = False
    references: tuple[str, ...] = ()
    origin: str = ""

    def trigger_words(self) -> frozenset[str]:
        """The words of which a file must hold one for this rule to match in it."""
        if self.words:
            return frozenset(self.words)
        return frozenset(_last_word(pattern) for pattern in self.match)


def _last_word(pattern: str) -> str:
    return [part for part in pattern.split(".") if part not in ("*", "")][-1]


def load(path: Path) -> list[Rule]:
    """The rules of one YAML file.

    Raises RuleError, with file, line and what to do, for anything that is not
    a rule pack.
    """
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise RuleError(f"{shown(path)}: cannot be read: {reason(error)}") from None
    except UnicodeDecodeError as error:
        raise RuleError(f"{shown(path)}: cannot be read: not UTF-8 (byte {error.start})") from None
    try:
        node, entries = _composed(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f":{mark.line + 1}" if mark else ""
        raise RuleError(f"{path}{place}: not YAML: {getattr(error, 'problem', error)}") from None
    if not isinstance(entries, list) or not entries:
        raise RuleError(f"{path}:1: a rule pack is a list of rules, each starting with '- code: …'")
    lines = [item.start_mark.line + 1 for item in node.value] if node else []
    return [_rule(entry, f"{path}:{line}") for entry, line in zip(entries, lines)]


def _composed(text: str) -> tuple[Any, Any]:
    """The document of a YAML text as nodes, which know their lines, and as values; read only once."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        node = loader.get_single_node()
        return node, None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


def _rule(entry: Any, place: str) -> Rule:
    if not isinstance(entry, dict):
        raise RuleError(f"{place}: a rule is a mapping with code, name, summary, kind, …")
    for key in entry:
        if key not in _FIELDS:
            from difflib import get_close_matches

            near = get_close_matches(str(key), _FIELDS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise RuleError(f"{place}: unknown field {key!r}{hint}")
    for key in ("code", "name", "summary", "kind"):
        if not isinstance(entry.get(key), str) or not entry[key].strip():
            raise RuleError(f"{place}: the field {key!r} is missing")
    _check_choice(entry, "kind", KINDS, place)
    _check_choice(entry, "fix", FIXES, place)
    _check_choice(entry, "severity", SEVERITIES, place)
    _check_choice(entry, "status", STATUSES, place)
    if not _CODE.match(entry["code"]):
        raise RuleError(f"{place}: code {entry['code']!r} is not letters and digits, such as ACME101")
    match = _texts(entry.get("match", ()), "match", place)
    words = _texts(entry.get("words", ()), "words", place)
    if not match and not words:
        raise RuleError(f"{place}: the field 'match' is missing")
    _check_versions(str(entry.get("versions", "")), place)
    examples = entry.get("examples", ())
    if not isinstance(examples, (list, tuple)) or not all(isinstance(item, dict) for item in examples):
        raise RuleError(f"{place}: 'examples' is a list of mappings with before/after or unchanged")
    for number, example in enumerate(examples):
        _check_example(example, f"{place}: example {number} of {entry['code']}")
    options = entry.get("options", {})
    if not isinstance(options, dict):
        raise RuleError(f"{place}: 'options' is a mapping")
    for key in options:
        if not isinstance(key, str):  # for YAML, on and off are truth values
            raise RuleError(f"{place}: the option {key!r} is no text: write it in quotes")
    return Rule(
        code=entry["code"],
        name=entry["name"],
        summary=entry["summary"],
        kind=entry["kind"],
        match=match,
        excluded=_texts(entry.get("except", ()), "except", place),
        replace=str(entry.get("replace", "")),
        versions=str(entry.get("versions", "")),
        fix=entry.get("fix", "none"),
        severity=entry.get("severity", "warning"),
        status=entry.get("status", ""),
        why=str(entry.get("why", "")).strip(),
        message=" ".join(str(entry.get("message", "")).split()),
        advice=" ".join(str(entry.get("advice", "")).split()),
        words=words,
        options=options,
        examples=tuple(examples),
        opt_in=entry.get("opt_in", False) is True,
        references=_texts(entry.get("references", ()), "references", place),
        origin=place,
    )


def _texts(value: Any, key: str, place: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise RuleError(f"{place}: {key!r} is a text or a list of texts")


def _check_example(example: dict[Any, Any], place: str) -> None:
    for key, value in example.items():
        if key not in _EXAMPLE_FIELDS:
            raise RuleError(f"{place}: unknown field {key!r}; the fields are {', '.join(_EXAMPLE_FIELDS)}")
        if not isinstance(value, str):
            raise RuleError(f"{place}: {key!r} is a text; write a number in quotes")
    if {"before", "after", "unchanged", "reported"} & set(example) not in _EXAMPLE_KINDS:
        raise RuleError(f"{place}: it has both before and after, or only unchanged, or only reported")


def _check_choice(entry: dict[str, Any], key: str, allowed: tuple[str, ...], place: str) -> None:
    value = entry.get(key, allowed[-1] if key != "status" else "")
    if value not in allowed:
        choices = ", ".join(item or "''" for item in allowed)
        raise RuleError(f"{place}: {key} {value!r} is not one of {choices}")


def _check_versions(text: str, place: str) -> None:
    for condition in filter(None, (part.strip() for part in text.split(","))):
        if not _CONDITION.match(condition):
            raise RuleError(f"{place}: versions {text!r} is not like '>=2.1,<2.6'")


def applies(rule: Rule, version: tuple[int, ...]) -> bool:
    """Whether a rule holds for a torch version such as ``(2, 6, 0)``."""
    return in_range(rule.versions, version)


def in_range(conditions: str, version: tuple[int, ...]) -> bool:
    """Whether a version meets all of ``conditions``, such as ``>=2.1,<2.6``; none are always met."""
    for condition in filter(None, (part.strip() for part in conditions.split(","))):
        match = _CONDITION.match(condition)
        if match is None:
            return False
        wanted = tuple(int(part) for part in match.group(2).split("."))
        have = version[: len(wanted)]
        sign = match.group(1)
        fits = {
            ">=": have >= wanted,
            "<=": have <= wanted,
            "==": have == wanted,
            ">": have > wanted,
            "<": have < wanted,
        }[sign]
        if not fits:
            return False
    return True


Load = Callable[[Path], list[Rule]]


def load_all(extra: Iterable[str] = (), named: Iterable[str] = ("NPU",), load: Load = load) -> list[Rule]:
    """The project's own rules and those of the user's files, in the order of their codes.

    Of the packs in ``rules/opt_in`` only those are read that ``named`` asks for by beginnings of
    codes: the rules of ``8_….yaml`` begin with NPU8.

    Raises RuleError for a bad pack or a code that is defined twice.
    """
    rules: dict[str, Rule] = {}
    folder, named = data_folder("rules"), tuple(named)
    opt_in = [path for path in sorted(folder.glob("opt_in/*.yaml")) if _is_named(path, named)]
    paths = [*sorted(folder.glob("*.yaml")), *opt_in, *map(Path, extra)]
    for path in paths:
        for rule in load(path):
            if rule.code in rules:
                raise RuleError(f"{rule.origin}: {rule.code} is already defined in {rules[rule.code].origin}")
            rules[rule.code] = rule
    return [rules[code] for code in sorted(rules)]


def _is_named(path: Path, named: tuple[str, ...]) -> bool:
    beginning = f"NPU{path.name[0]}"
    return any(code.startswith(beginning) or beginning.startswith(code) for code in named)


def choose(rules: list[Rule], select: Iterable[str], ignore: Iterable[str]) -> list[Rule]:
    """The rules whose codes start with one of ``select``, and with none of ``ignore`` that is as long.

    ``ALL``, which counts as the shortest, stands for every rule but those that are ``opt_in``: they are
    chosen by a beginning of their code. Raises RuleError for a text that fits no rule.
    """
    select, ignore = tuple(select), tuple(ignore)
    for wanted in (*select, *ignore):
        if wanted != "ALL" and not any(rule.code.startswith(wanted) for rule in rules):
            near = _likeliest(wanted, rules)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise RuleError(f"unknown rule {wanted!r}{hint}")
    named = tuple(pattern for pattern in select if pattern != "ALL")
    return [
        rule
        for rule in rules
        if _longest(rule.code, named if rule.opt_in else select) > _longest(rule.code, ignore)
    ]


def _likeliest(wanted: str, rules: list[Rule]) -> list[str]:
    """What may be meant by a text that fits no rule: another spelling, a name, or codes like it."""
    codes = [rule.code for rule in rules]
    if any(code.startswith(wanted.upper()) for code in codes):
        return [wanted.upper()]
    named = [rule.code for rule in rules if rule.name == wanted.lower()]
    if named:
        return named
    from difflib import get_close_matches

    return get_close_matches(wanted.upper(), ["ALL", *codes], n=3, cutoff=0.5)


def ignores(select: Iterable[str], ignore: Iterable[str], code: str) -> bool:
    """Whether a rule that goes along with others is unwanted: it need not be selected."""
    return _longest(code, tuple(ignore)) > _longest(code, tuple(select))


def _longest(code: str, patterns: tuple[str, ...]) -> int:
    """How much of a code the longest beginning of it has, 0 for ALL, -1 without any."""
    fitting = ("" if pattern == "ALL" else pattern for pattern in patterns)
    return max((len(pattern) for pattern in fitting if code.startswith(pattern)), default=-1)
