"""The rules that a run uses, and which of them may match in a text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, cached_property
from itertools import accumulate, filterfalse
from typing import Any, Callable

from migrator.api_support import versions
from migrator.core.settings import Settings
from migrator.matchers.packs import Load, Rule, choose, load, load_all
from migrator.matchers.starting_words import line_words, may_be_given, roots, starting_words, written_as
from migrator.matchers.structural import absent_uses, api_verdicts
from migrator.names.device_vocabulary import DeviceVocabulary
from migrator.names.index import identifiers
from migrator.names.written_names import Written, read_names
from migrator.project.frameworks import (
    SHOWING,
    TORCH,
    frameworks_in,
    holds_settings,
    imports_torch,
    of_project,
)
from migrator.project.offers import DEVICE_KEY, LIBRARY, MODULE
from migrator.project.project import Project

IMPORT = "NPU901"
TRANSFER = "NPU902"
SPECIFY_DEVICE = "NPU190"
MODES = (TRANSFER, SPECIFY_DEVICE)  # a command's options ask for them
_FULL_NAME = re.compile(r"\btorch(?:_npu)?(?:\.\w+)+")
FROM_PROJECT = ("cuda_operators", "library_functions", "legacy_constructors", "reducers")


class Rules:
    """The chosen rules for one torch version; ``load`` reads rule packs.

    ``every`` are all rules by their codes, ``enabled`` the codes of the chosen ones, ``order`` their places
    where they are equally specific. Raises RuleError for a bad rule pack or selection, UnknownVersion for a
    torch version that the API database does not know.
    """

    def __init__(self, settings: Settings, load: Load = load) -> None:
        self.settings = settings
        self.version = versions.resolve(settings.version)
        every = load_all(settings.rule_files, (*settings.select, *settings.ignore), load)
        self.every: dict[str, Rule] = {rule.code: rule for rule in every}
        chosen = choose(every, settings.select, settings.ignore)
        self._chosen = [rule for rule in chosen if versions.in_range(rule.versions, self.version.tuple)]
        self._of_others = [rule for rule in self._chosen if rule.finder.other]
        self._of_python = [rule for rule in self._chosen if not rule.finder.other]
        modes = {TRANSFER: settings.transfer, SPECIFY_DEVICE: settings.specify_device}
        self._of_entries = [self.every[code] for code, wanted in modes.items() if wanted]
        self.order = {rule.code: place for place, rule in enumerate(every)}
        self.opt_in = any(rule.opt_in for rule in self._chosen)
        self.enabled = frozenset(rule.code for rule in self._chosen)
        self._own_words = {rule.code: starting_words(rule) for rule in self._of_python}
        self._words = dict(self._own_words)  # with what a project adds to them
        self._written_as = {rule.code: how for rule in self._of_python if (how := written_as(rule))}
        self._roots = {rule.code: roots(rule) for rule in self._of_python}
        self._starts: dict[str, list[int]] = {}  # the places of the rules that start from a word
        # The names under which files of the project hand modules on, and the packages of these.
        self._handed_on: frozenset[str] = frozenset()
        self._elsewhere: frozenset[str] = frozenset()
        self._line_words: dict[str, frozenset[str]] = {}  # of names that only the project knows
        self._project: Project | None = None
        self._vocabularies: dict[tuple[Any, ...], tuple[DeviceVocabulary, DeviceVocabulary]] = {}

    def vocabularies(self, project: Project) -> tuple[DeviceVocabulary, DeviceVocabulary]:
        """Where devices go, by the rule packs and the project: for device strings, and for backends."""
        keys, libraries = project.offers.names(DEVICE_KEY), project.offers.names(LIBRARY)
        known = (keys, libraries, libraries & project.main_packages, TORCH in project.frameworks)
        if known not in self._vocabularies:
            device, backend = (each.of_project(*known) for each in self._of_packs)
            self._vocabularies = {known: (device, backend)}
        return self._vocabularies[known]

    @cached_property
    def _of_packs(self) -> tuple[DeviceVocabulary, DeviceVocabulary]:
        from migrator.matchers.kinds import string

        return string.vocabularies(rule for rule in self.every.values() if rule.kind == "string")

    @cached_property
    def _other_words(self) -> dict[str, frozenset[str]]:
        """The words from which the rules about other files start: few runs need them."""
        return {rule.code: starting_words(rule) for rule in self._of_others}

    @cached_property
    def _all_words(self) -> frozenset[str]:
        return frozenset().union(*self._words.values(), *self._other_words.values())

    def is_relevant(self, text: str) -> bool:
        """Whether a text holds a word from which some rule starts."""
        if self._of_entries and "torch" in text:
            return True
        return not self._all_words.isdisjoint(identifiers(text))

    def of_other_files(self, text: str, project: Project) -> list[Rule]:
        """The rules that may match in a text other than Python: those of all frameworks of the project."""
        if self.settings.transfer:
            return []
        # JSON and TOML may write a letter as \u0063.
        words = identifiers(re.sub(r"\\u00([2-7][\da-fA-F])", lambda found: chr(int(found[1], 16)), text))
        known = self._other_words
        frameworks = {*project.frameworks} or {TORCH}
        fitting = (rule for rule in self._of_others if not known[rule.code].isdisjoint(words))
        fitting = (rule for rule in fitting if not frameworks.isdisjoint(rule.framework))
        return [rule for rule in fitting if _file_fits(rule, words)]

    def starting(self, text: str, project: Project, file: str = "") -> tuple[list[Rule], frozenset[str]]:
        """The rules that may match in the text of a Python file, and the words from which they start."""
        self._learn(project)
        written = read_names(text, self._handed_on)
        words = written.words
        frameworks = _frameworks_of(text, words, project)
        starts: dict[int, list[str]] = {}
        for word in self._starts.keys() & words:
            for place in self._starts[word]:
                starts.setdefault(place, []).append(word)
        owned = cache(lambda package: project.owns(package, file))
        named = ((self._of_python[place], starts[place]) for place in sorted(starts))
        meant = (each for each in named if not frameworks.isdisjoint(each[0].framework))
        rules = [rule for rule, own in meant if self._may_start(rule, own, written, owned)]
        apis = self._api_words(rules, written)
        rules = [
            rule
            for rule in rules
            if (apis[source] if (source := rule.finder.words_from) in apis else _file_fits(rule, words))
            and may_be_given(rule, text)
        ]
        triggers = frozenset().union(
            *(self._words[rule.code] for rule in rules if not _reads_text(rule)),
            *(self._line_words.get(rule.code, frozenset()) | line_words(rule) for rule in rules),
            *apis.values(),
        )
        if self._of_entries and "torch" in words:
            return [*rules, *self._of_entries], triggers | {"torch"}
        return rules, triggers

    def _may_start(
        self, rule: Rule, words: Iterable[str], written: Written, owned: Callable[[str], bool]
    ) -> bool:
        """Whether a rule may start from these words of a text: from parts of names if it goes by names.

        ``owned`` are the packages of the project itself, which no rule is about.
        """
        packages = self._roots[rule.code]
        in_full = "torch" not in packages or rule.given.get("in_full")
        if packages and in_full and packages.isdisjoint(self._elsewhere):
            used = [*filterfalse(owned, packages & written.words)]
            return bool(used) and written.may_use(used, rule.fits, ("",) if rule.words else words)
        if rule.finder.goes_by == "packages":
            words = filterfalse(owned, words)
        written_as = self._written_as.get(rule.code)
        return written_as is None or any(written_as(written, word) for word in words)

    def _api_words(self, rules: list[Rule], written: Written) -> dict[str, frozenset[str]]:
        """The words from which rules about torch's names start in a text, by what the rules call them."""
        found = {}
        about = [rule for rule in rules if rule.finder.words_from == "torch_apis"]
        if about:
            found["torch_apis"] = api_verdicts.starting_words(
                about, self.version, self.settings.hardware, written
            )
        if any(rule.finder.words_from == "torch_names" for rule in rules):
            found["torch_names"] = absent_uses.starting_words(self.version, written)
        return found

    def start_in(self, text: str, rules: Iterable[Rule]) -> bool:
        """Whether rules start from words of new text: few rules with fixes are about what fixes write."""
        words, apart = identifiers(text), identifiers(_FULL_NAME.sub(" ", text))
        full = (name.split(".") for name in _FULL_NAME.findall(text))
        names = {beginning for parts in full for beginning in accumulate(parts, "{}.{}".format)}
        for rule in rules:
            only_reports = rule.on and not (rule.do or rule.cases)  # that is done in the first pass
            if rule.finder.settled or only_reports or _reads_text(rule):
                continue
            by_names = rule.finder.goes_by == "names" and not (rule.on and rule.words)
            known = self._other_words if rule.finder.other else self._words
            if not known.get(rule.code, frozenset()).isdisjoint(apart if by_names else words):
                return True
            if by_names and any(rule.fits(name) for name in names):
                return True
        return False

    def asks_for(self, word: str) -> bool:
        """Whether a rule about Python starts from a word."""
        return any(word in self._words[rule.code] for rule in self._of_python if not _reads_text(rule))

    def _learn(self, project: Project) -> None:
        """Start from names that only the project knows too."""
        if project is not self._project:
            self._project = project
            for rule in self._chosen:
                source = rule.finder.words_from
                if source in FROM_PROJECT:
                    self._words[rule.code] = project.words(source)
                    self._line_words[rule.code] = project.line_words(source)
                elif rule.finder.asks_project and rule.code in self._own_words:
                    self._words[rule.code] = rule.options.words_in(project, self._own_words[rule.code])
            modules = project.offers.of(MODULE)
            self._handed_on = frozenset(name.rpartition(".")[2] for name in project.offers.names(MODULE))
            self._elsewhere = frozenset(each.detail[0].partition(".")[0] for each in modules)
            self._starts = {}
            for place, rule in enumerate(self._of_python):
                for word in self._words[rule.code]:
                    self._starts.setdefault(word, []).append(place)


_made: dict[Settings, Rules] = {}


def rules_for(settings: Settings, load: Load = load) -> Rules:
    """The rules for some settings, made once in a process. Raises what ``Rules`` raises."""
    if settings not in _made:
        _made[settings] = Rules(settings, load)
    return _made[settings]


def _frameworks_of(text: str, words: set[str], project: Project) -> frozenset[str]:
    """The frameworks whose rules speak of a Python text."""
    found = frozenset[str]() if words.isdisjoint(SHOWING) else frameworks_in(text)
    keys = project.offers.names(DEVICE_KEY)
    if found and keys and holds_settings(text, keys):
        return frozenset({TORCH})  # they are values that PyTorch files of the project read
    known = found or of_project(project.frameworks)
    return known if found or TORCH in known or not imports_torch(text) else frozenset({TORCH})


def _reads_text(rule: Rule) -> bool:
    """Whether a rule is about all of torch's names: in which words it starts depends on the file."""
    return rule.finder.words_from in ("torch_apis", "torch_names")


def _file_fits(rule: Rule, words: set[str]) -> bool:
    """Rules may ask for words that a file has, or has not.

    What the pack says decides for most of them: their code, with the type of the options, is not loaded then.
    """
    given = (rule.given.get(name) or [] for name in ("file_has", "file_has_not"))
    has, has_not = ([each] if isinstance(each, str) else each for each in given)
    if (has and words.isdisjoint(has)) or not words.isdisjoint(has_not):
        return False
    wanted = rule.options.words_of_file() if rule.finder.asks_project else ()
    return not wanted or not words.isdisjoint(wanted)
