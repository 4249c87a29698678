"""Runtime rules: which sign of a run asks for which fix. They are in ``rules/runtime``: docs/repair.md."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from migrator.data_folders import data_folder
from migrator.language import N_, _
from migrator.matchers.options import OptionError, did_you_mean, typed
from migrator.matchers.packs import RuleError, entries_of
from migrator.verify.diagnosis import Failure
from migrator.verify.repair.fixes import FIXES, Options

_EXAMPLE = frozenset({"before", "after", "unchanged", "at", "failure", "text", "values", "use", "more"})


@dataclass(frozen=True)
class Signs:
    """What a rule goes by; all that is given has to hold.

    ``run``: how the run went. ``kinds``: the exception or what it derives from; ``text``: a regular
    expression for its message; ``calls``: functions of which one was called on the way to it.
    """

    run: Literal["failure", "lost", "cpu", "waits"] = "failure"
    kinds: tuple[str, ...] = ()
    text: str = ""
    calls: tuple[str, ...] = ()

    def fit(self, failure: Failure) -> bool:
        """Whether a failure shows them."""
        return (
            (not self.kinds or not set(self.kinds).isdisjoint(failure.kinds))
            and (not self.text or bool(re.search(self.text, failure.text, re.S)))
            and (not self.calls or any(frame.function in self.calls for frame in failure.frames))
        )


@dataclass(frozen=True)
class RuntimeRule:
    """One runtime rule, as docs/repair.md describes it."""

    code: str = field(metadata={"required": True})
    name: str = field(metadata={"required": True})
    summary: str = field(metadata={"required": True})
    signs: Signs = field(metadata={"required": True})
    fix: str = ""
    options: Options = field(default_factory=Options)
    message: str = ""
    advice: str = ""
    why: str = ""
    examples: tuple[Any, ...] = ()


def load(path: Path) -> list[RuntimeRule]:
    """The rules of one file. Raises RuleError, with file, line and what is wrong."""
    return [_rule(entry, f"{path}:{node.start_mark.line + 1}") for entry, node in entries_of(path)]


def _rule(entry: Any, place: str) -> RuntimeRule:
    if not isinstance(entry, dict):
        raise RuleError(_("{place}: a rule is a mapping with code, name, summary, signs, …", place=place))
    try:
        fix, options = str(entry.get("fix", "")), entry.get("options", {})
        if fix and fix not in FIXES:
            known = ", ".join(FIXES)
            raise OptionError("fix", _("unknown fix {fix!r}; there are {fixes}", fix=fix, fixes=known))
        if options and not fix:
            raise OptionError("options", _("a rule without a fix has no options"))
        for name in (name for name in options if name not in FIXES[fix][1]):
            meant = did_you_mean(name, FIXES[fix][1])
            raise OptionError(name, _("unknown option {name!r}{name2}", name=name, name2=meant))
        rule = typed(RuntimeRule, entry)
        re.compile(rule.signs.text)
    except (OptionError, re.error) as error:
        raise RuleError(f"{place}: {error}") from None
    if not re.fullmatch(r"[A-Z]{2,8}\d{3,4}", rule.code):
        why = N_("{place}: code {code!r} is not letters and digits, such as NPU1101")
        raise RuleError(_(why, place=place, code=rule.code))
    for number, example in enumerate(rule.examples):
        unknown = set(example) - _EXAMPLE if isinstance(example, dict) else {_("it is not a mapping")}
        if unknown:
            why, first = N_("{place}: example {number} of {code}: unknown field {unknown!r}"), min(unknown)
            raise RuleError(_(why, place=place, number=number, code=rule.code, unknown=first))
    said = {key: _(" ".join(getattr(rule, key).split())) for key in ("message", "advice", "why", "summary")}
    return replace(rule, **said)  # type: ignore[arg-type]  # all of them are texts


def load_all() -> list[RuntimeRule]:
    """All runtime rules, in the order of their codes, which is that in which they are tried."""
    rules = [rule for path in sorted(data_folder("rules").glob("runtime/*.yaml")) for rule in load(path)]
    codes = [rule.code for rule in rules]
    twice = next((code for code in codes if codes.count(code) > 1), None)
    if twice:
        raise RuleError(_("{twice} is defined twice in rules/runtime", twice=twice))
    return sorted(rules, key=lambda rule: rule.code)
