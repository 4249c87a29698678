"""Rule packs: read, checked, selected."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Generic, Literal, Optional, cast

from migrator import SITE
from migrator.api_support.versions import CONDITION
from migrator.data_folders import data_folder
from migrator.files.errors import Unreadable, shown
from migrator.files.source import read_settings
from migrator.findings.finding import begins, longest_beginning
from migrator.language import N_, MessageError, _, did_you_mean
from migrator.light import Declared, Frozen
from migrator.matchers.finders import KINDS, ON, QUERY, Finder
from migrator.matchers.options import WORDS, OptionError, check_expressions, typed
from migrator.project.frameworks import TORCH, Framework

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from migrator.matchers.query.parsing import Plan
    from migrator.project.project import Project

    OptionsOf = TypeVar("OptionsOf", bound="Options", default=Any)
else:  # before Python 3.13 a type variable has no default, and a rule is a rule of any options
    from typing import TypeVar

    OptionsOf = TypeVar("OptionsOf")

_DEEPEST = 100  # lists and mappings inside each other, of which a rule has four
_EXAMPLE_FIELDS = (
    "before after keep_cuda unchanged reported version requirements file program setup use differs not_run"
).split()
_EXAMPLE_KINDS = ({"before", "after"}, {"unchanged"}, {"reported"})
_LIBRARY = r"[\w-]+ (?:>=|<)\d+(?:\.\d+)*(?:,(?:>=|<)\d+(?:\.\d+)*)*\Z"
_CODE = r"[A-Z]{2,8}\d{3,4}\Z"


class RuleError(MessageError):
    """A rule pack, or a choice of rules, that cannot be used."""


class Options(Declared):
    """The options that rules of all kinds have.

    ``file_has``: words of which a file must have one. ``file_has_not``: words that it must not have.
    ``line_words``: with them too a statement is looked at. ``instead``: the alternative on an NPU, for
    reports; ``{name}`` in it is the API's. ``needs_npu``: whether a fix needs ``import torch_npu``, where the
    rule knows better than its kind. ``only_given``: words that start the rule only where a call by them is
    given something. ``in_full``: it starts only where a file uses or imports one of its names.
    """

    file_has: tuple[str, ...] = field(default=(), metadata=WORDS)
    file_has_not: tuple[str, ...] = field(default=(), metadata=WORDS)
    line_words: tuple[str, ...] = ()
    instead: str = ""
    needs_npu: Optional[bool] = None
    only_given: tuple[str, ...] = ()
    in_full: bool = False

    def words_in(self, project: Project, words: frozenset[str]) -> frozenset[str]:
        """The words from which a rule that starts from ``words`` starts in a project."""
        return words

    def words_of_file(self) -> Collection[str]:
        """The words of which a file must have one, beside those that the rule starts from; none for any."""
        return self.file_has


class Rule(Frozen, Generic[OptionsOf]):
    """One rule of a pack, as docs/rule_format.md describes it.

    ``framework`` are those whose files it speaks of. One with ``on`` has the kind QUERY; its ``where``,
    ``do`` and ``cases`` stand as the pack writes them, see ``plan``. ``given`` are the options as the pack
    writes them.
    """

    code: str
    name: str
    summary: str
    kind: str
    on: tuple[Literal["call", "decorator", "base", "name", "member", "string", "expression"], ...] = ()
    args: tuple[str, ...] = ()
    where: str = ""
    do: tuple[str, ...] = ()
    cases: tuple[dict[str, Any], ...] = ()
    once: Literal["", "function", "file"] = ""
    match: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    replace: str = ""
    versions: str = ""
    library: str = ""
    fix: Literal["safe", "unsafe", "none"] = "none"
    severity: Literal["blocker", "error", "warning", "info"] = "warning"
    status: Literal["", "absent", "unsupported", "fallback", "partial", "unknown"] = ""
    why: str = ""
    message: str = ""
    advice: str = ""
    words: tuple[str, ...] = ()
    given: dict[str, Any] = field(default_factory=dict)
    examples: tuple[Mapping[str, Any], ...] = ()
    opt_in: bool = False
    transfer: bool = False
    framework: tuple[Framework, ...] = (TORCH,)
    any_device: bool = False
    references: tuple[str, ...] = ()
    origin: str = ""

    @cached_property
    def finder(self) -> Finder:
        """Where the code of the rule is."""
        return ON[self.on[0]] if self.on else KINDS[self.kind]

    @cached_property
    def options(self) -> OptionsOf:
        """The options as the dataclass that is declared beside the code of the kind."""
        return cast(OptionsOf, typed(self.finder.declared, self.given))

    @cached_property
    def plan(self) -> Plan:
        """The parsed ``where`` and ``cases``. Raises QueryError for what cannot be used."""
        from migrator.matchers.query.parsing import plan_of

        return plan_of(self)

    @cached_property
    def positions(self) -> dict[str, int]:
        """Where each of the ``args`` stands that may be given without its keyword."""
        positional = self.args[: self.args.index("*")] if "*" in self.args else self.args
        return {name: place for place, name in enumerate(positional)}

    @cached_property
    def page(self) -> str:
        """The address of the rule's page, where there is a site and the rule is built in."""
        ours = SITE and Path(self.origin).is_relative_to(data_folder("rules"))
        return f"{SITE}rules/{self.code}/" if ours else ""

    def fits(self, name: str) -> bool:
        """Whether the rule's ``match`` fits a qualified name, and its ``except`` does not."""
        return bool(fitting(self.match, self.excluded, name))

    @property
    def links(self) -> tuple[str, ...]:
        """The rule's page and its references; the first one is that which findings show."""
        return (self.page, *self.references) if self.page else self.references


@cache
def pattern_fits(pattern: str, name: str) -> bool:
    """Whether ``torch.cuda.*`` fits ``torch.cuda.amp.autocast``.

    A ``*`` at the end stands for the name itself and everything below it; elsewhere for exactly one
    component, and behind a beginning (``_cuda_*``) for the rest of one.
    """
    wanted, have = pattern.split("."), name.split(".")
    for place, part in enumerate(wanted):
        if part == "*" and place == len(wanted) - 1:
            return True
        if place >= len(have):
            return False
        begins = part.endswith("*") and have[place].startswith(part[:-1])
        if not begins and part != have[place]:
            return False
    return len(have) == len(wanted)


def rule_of(rules: Iterable[Rule[OptionsOf]], name: str) -> Optional[Rule[OptionsOf]]:
    """The rule that a name belongs to: the most specific one, and of several the first in ``rules``."""
    return min((rule for rule in rules if rule.fits(name)), key=lambda rule: rank(rule, name), default=None)


def rank(rule: Rule, name: str) -> tuple[int, bool]:
    """How specific a rule is for a name, by the length of its pattern: the most specific one comes first."""
    pattern = fitting(rule.match, rule.excluded, name)
    return -len(pattern.replace("*", "").rstrip(".")), "*" in pattern


@cache
def fitting(patterns: tuple[str, ...], excluded: tuple[str, ...], name: str) -> str:
    """The longest of the patterns that fits a name; empty where none does, or one that is excluded."""
    if any(pattern_fits(pattern, name) for pattern in excluded):
        return ""
    # Most patterns have no star: to compare them here takes a fifth of the time.
    fit = (each for each in patterns if each == name or ("*" in each and pattern_fits(each, name)))
    return max(fit, key=lambda pattern: len(pattern.replace("*", "").rstrip(".")), default="")


# What a pack writes for a rule.
_FIELDS = {field.name for field in fields(Rule)} - {"excluded", "given", "origin"}
_FIELDS |= {"except", "options"}


def load(path: Path, checked: bool = False) -> list[Rule]:
    """The rules of one YAML file. Raises RuleError for anything that is not a rule pack.

    The options, conditions and actions of our own packs are known to be right, and looked at only where they
    are to be ``checked``.
    """
    checked = checked or data_folder("rules") not in path.parents
    return [_rule(entry, node, path, checked) for entry, node in entries_of(path)]


def entries_of(path: Path) -> list[tuple[Any, Any]]:
    """The entries of one YAML file, each with its node, which knows the lines.

    Raises RuleError, with file, line and what to do, for anything that is not a list of rules.
    """
    import yaml

    try:
        text = read_settings(path).decode("utf-8")
    except Unreadable as error:
        raise RuleError(f"{shown(path)}: {error}") from None
    except UnicodeDecodeError as error:
        said = _("{path}: cannot be read: not UTF-8 (byte {start})", path=shown(path), start=error.start)
        raise RuleError(said) from None
    try:
        node, entries = _composed(text, None if data_folder("rules") in path.parents else path)
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", error)
        about = {"path": path, "place": f":{mark.line + 1}" if mark else "", "error": problem}
        raise RuleError(_("{path}{place}: not YAML: {error}", **about)) from None
    if isinstance(entries, dict) and isinstance(entries.get("rules"), dict):
        from migrator.matchers.vendor_rules import as_pack  # a hook does without it

        node, entries = _composed(as_pack(entries))
        if not entries:
            return []  # none has an equivalent
    if not isinstance(entries, list) or not entries:
        said = N_("{path}:1: a rule pack is a list of rules, each starting with '- code: …'")
        raise RuleError(_(said, path=path))
    return list(zip(entries, node.value))


def _composed(text: str, of_user: Optional[Path] = None) -> tuple[Any, Any]:
    """The document of a YAML text as nodes, which know their lines, and as values.

    Only a user's pack may be made to take all stack or memory: to look for that takes half as long again.
    """
    import yaml

    from migrator.files.yaml_size import expands_too_far

    if of_user is not None and (line := _too_deep(yaml.parse(text, Loader=_reader()))):
        said = _("{line}: lists and mappings are nested too deeply", line=line)
        raise RuleError(f"{of_user}:{said}")
    loader = _reader()(text)
    try:
        node = loader.get_single_node()
        if of_user is not None and node is not None and expands_too_far(node):
            said = _("1: its aliases expand to too many values: write them out")
            raise RuleError(f"{of_user}:{said}")
        return node, None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


@cache
def _reader() -> Any:
    """A reader for which only true and false are truth values, as in YAML 1.2, and ``on`` is a word."""
    import yaml

    class Reader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # the C reader if it is there
        pass

    known = Reader.yaml_implicit_resolvers.items()
    Reader.yaml_implicit_resolvers = {letter: several for letter, several in known if letter not in "onyONY"}
    return Reader


def _too_deep(events: Iterable[Any]) -> int:
    """The line at which lists and mappings are nested as nobody nests them; 0 without.

    The C reader of YAML ends the process there, or, where it is newer, refuses the text.
    """
    import yaml

    depth = 0
    try:
        for event in events:
            name = event.__class__.__name__
            depth += name.endswith("StartEvent") - name.endswith("EndEvent")
            if depth > _DEEPEST:
                return int(event.start_mark.line) + 1
    except yaml.MarkedYAMLError as error:
        if error.problem_mark is None or "nesting" not in str(error.problem):
            raise
        return error.problem_mark.line + 1
    return 0


def _rule(entry: Any, node: Any, path: Path, checked: bool) -> Rule:
    """One rule from a mapping and its YAML node, which knows the lines."""

    def wrong(problem: object, *keys: str | int) -> RuleError:
        return RuleError(f"{path}:{_line(node, *keys)}: {problem}")

    def said(text: str) -> str:
        return _(" ".join(text.split()))

    for problem in _wrong_entry(entry):
        raise wrong(problem)
    try:
        given = _options(entry, checked)
    except OptionError as error:
        raise wrong(error, "options", error.name) from None
    values = {key: value for key, value in entry.items() if key not in ("options", "except", "examples")}
    values["kind"] = QUERY if "on" in entry else entry["kind"]
    more = {"excluded": entry.get("except", ()), "given": given}
    try:
        rule = typed(Rule, {**values, **more, "origin": f"{path}:{_line(node)}"})
    except OptionError as error:
        raise wrong(error, error.name) from None
    if checked and rule.on:
        from migrator.matchers.query.parsing import QueryError

        try:
            rule.__dict__.pop("plan", rule.plan)
        except QueryError as error:
            raise wrong(error, *error.keys) from None
    for key, problem in _wrong_rule(rule):
        raise wrong(problem, key)
    people_read = ("message", "advice")
    cases = ({**case, **{key: said(case[key]) for key in people_read if key in case}} for case in rule.cases)
    why = rule.why.strip()
    is_translated = said(why) != " ".join(why.split())  # an English paragraph keeps its lines
    return replace(
        rule,
        summary=_(rule.summary),
        message=said(rule.message),
        advice=said(rule.advice),
        why=said(why) if is_translated else why,
        cases=tuple(cases),
        examples=tuple(entry.get("examples", ())),
    )


def _wrong_entry(entry: Any) -> Iterator[str]:
    """What is wrong with the fields of an entry; what comes behind the first may follow from it."""
    if not isinstance(entry, dict):
        yield _("a rule is a mapping with code, name, summary, on or kind, …")
    for key in entry:
        if key not in _FIELDS:
            yield _("unknown field {key!r}{key2}", key=key, key2=did_you_mean(key, _FIELDS))
    if "kind" in entry and "on" in entry:
        yield _("a rule has either 'on' or 'kind'")
    for key in ("code", "name", "summary", *(("kind",) if "on" not in entry else ())):
        if not isinstance(entry.get(key), str) or not entry[key].strip():
            yield _("the field {key!r} is missing", key=key)
    kinds = [kind for kind in KINDS if kind != QUERY]
    if "on" not in entry and entry["kind"] not in kinds:
        given = entry.get("options")
        handler = given.get("handler") if isinstance(given, dict) else None  # once of the kind structural
        meant = did_you_mean(str(handler or entry["kind"]), kinds)
        yield _("unknown kind {kind!r}{meant}", kind=entry["kind"], meant=meant)
    if not re.match(_CODE, entry["code"]):
        yield _("code {entry!r} is not letters and digits, such as ACME101", entry=entry["code"])
    examples = entry.get("examples", ())
    if not isinstance(examples, (list, tuple)) or not all(isinstance(item, dict) for item in examples):
        yield _("'examples' is a list of mappings with before/after or unchanged")
    for number, example in enumerate(examples):
        for problem in _wrong_example(example):
            which = _("example {number} of {entry}", number=number, entry=entry["code"])
            yield f"{which}: {problem}"


def _wrong_example(example: dict[Any, Any]) -> Iterator[str]:
    for key, value in example.items():
        if key not in _EXAMPLE_FIELDS:
            fields = ", ".join(_EXAMPLE_FIELDS)
            yield _("unknown field {key!r}; the fields are {example_fields}", key=key, example_fields=fields)
        if not isinstance(value, str):
            yield _("{key!r} is a string: put numbers in quotes", key=key)
    if {"before", "after", "unchanged", "reported"} & set(example) not in _EXAMPLE_KINDS:
        yield _("it must have before and after, or unchanged, or reported")


def _wrong_rule(rule: Rule) -> Iterator[tuple[str, str]]:
    """What is wrong with a rule, with the field that says it: of those by which it goes, too.

    These are the missing fields, and those that its code does not look at.
    """
    for condition in filter(None, (part.strip() for part in rule.versions.split(","))):
        if not CONDITION.match(condition):
            yield "", _("versions {versions!r} is not like '>=2.1,<2.6'", versions=rule.versions)
    if rule.library and not re.match(_LIBRARY, rule.library):
        yield "", _("library {name!r} is not like 'transformers <4.51'", name=rule.library)
    finder = rule.finder
    if finder.takes_match and not (rule.match and all(pattern.strip(".* ") for pattern in rule.match)):
        yield "match", _("the field 'match' is missing or empty")
    if finder.replaces == "must" and not rule.replace:
        yield "replace", _("the field 'replace' is missing")
    idle = {
        **{key: not rule.on and getattr(rule, key) for key in ("args", "where", "do", "cases", "once")},
        "match": rule.match and not finder.takes_match,
        "replace": rule.replace and finder.replaces == "no",
        "words": rule.words and (finder.words_from or not finder.module),
    }
    of = _("a rule with 'on'") if rule.on else _("the kind {kind!r}", kind=rule.kind)
    for key in (key for key, is_idle in idle.items() if is_idle):
        yield key, _("{of} does not use the field {key!r}", of=of, key=key)


def _options(entry: dict[str, Any], checked: bool) -> dict[str, Any]:
    """The options of an entry. Raises OptionError for what does not fit."""
    given: Any = entry.get("options", {})
    if not isinstance(given, dict):
        raise OptionError("", _("'options' is a mapping"))
    for key in given:
        if not isinstance(key, str):  # for YAML, on and off are truth values
            raise OptionError("", _("the option {key!r} is not a string: write it in quotes", key=key))
    if checked:  # by what the code for the kind declares, which few runs load for all kinds
        check_expressions(typed(KINDS[QUERY if "on" in entry else entry["kind"]].declared, given))
    return given


def _line(node: Any, *keys: str | int) -> int:
    """The line of a key in a mapping of YAML, or of a key or an item in that one's value.

    The mapping's without it.
    """
    line: int = node.start_mark.line + 1
    for key in (each for each in keys if each != ""):
        if isinstance(key, int):
            node = marked = node.value[key]
        else:
            inside = {name.value: (name, value) for name, value in getattr(node, "value", ())}
            if key not in inside:
                break
            marked, node = inside[key]
        line = marked.start_mark.line + 1
    return line


Load = Callable[[Path], list[Rule]]


def load_all(extra: Iterable[str] = (), named: Iterable[str] = ("NPU",), load: Load = load) -> list[Rule]:
    """The rules of the user's files and the project's own, each in the order of their codes.

    That is the order in which they come where their patterns are equally specific.

    Of the packs in ``rules/opt_in`` only those are read that ``named`` asks for by beginnings of
    codes: the rules of ``8_….yaml`` begin with NPU8.

    Raises RuleError for a bad pack or a code that is defined twice.
    """
    rules: dict[str, Rule] = {}
    own: set[str] = set()
    folder, users, named = data_folder("rules"), [Path(file) for file in extra], tuple(named)
    opt_in = []
    for path in sorted(folder.glob("opt_in/*.yaml")):
        beginning = f"NPU{path.name[0]}"
        if beginning.startswith(named) or any(code.startswith(beginning) for code in named):
            opt_in.append(path)
    for path in [*sorted(folder.glob("*.yaml")), *opt_in, *users]:
        for rule in load(path):
            if rule.code in rules:
                about = {"origin": rule.origin, "code": rule.code, "origin2": rules[rule.code].origin}
                raise RuleError(_("{origin}: {code} is already defined in {origin2}", **about))
            rules[rule.code] = rule
        if path not in users:
            own.update(rules)
    return [rules[code] for code in sorted(rules, key=lambda code: (code in own, code))]


def choose(rules: list[Rule], select: Iterable[str], ignore: Iterable[str]) -> list[Rule]:
    """The rules whose codes start with one of ``select``, and with none of ``ignore`` that is as long.

    ``ALL``, which counts as the shortest, stands for every rule but those that are ``opt_in``: they are
    chosen by a beginning of their code. Raises RuleError for a text that fits no rule.
    """
    select, ignore = tuple(select), tuple(ignore)
    for wanted in (*select, *ignore):
        if wanted != "ALL" and not any(begins(wanted, rule.code) for rule in rules):
            near = _likeliest(wanted, rules)
            hint = _("; did you mean {near}?", near=", ".join(near)) if near else ""
            raise RuleError(_("unknown rule {wanted!r}{hint}", wanted=wanted, hint=hint))
    named = tuple(pattern for pattern in select if pattern != "ALL")
    asked = ((each, longest_beginning(named if each.opt_in else select, each.code)) for each in rules)
    return [each for each, length in asked if length > longest_beginning(ignore, each.code)]


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
    return longest_beginning(ignore, code) > longest_beginning(select, code)
