"""The engines of a run: one for each set of rules and torch version that its files ask for."""

from __future__ import annotations

from typing import Optional

from migrator.core.engine import Engine
from migrator.core.settings import Settings
from migrator.files.document import Document
from migrator.lint.check import SYNTAX, check
from migrator.lint.diagnostic import Checked, Diagnostic
from migrator.lint.jobs import RuleSet
from migrator.lint.known_packs import KnownPacks
from migrator.matchers.packs import RuleError, choose, load, load_all
from migrator.project.project import Project
from migrator.run.cache import Cache

__all__ = ["RuleError", "check_document", "engine_for"]

_engines: dict[tuple[RuleSet, Optional[str]], Engine] = {}


def engine_for(rules: RuleSet, fixing: Optional[str] = None, cache: Optional[Cache] = None) -> Engine:
    """The engine for a set of rules, made once; ``fixing`` is safe where only safe fixes are wanted.

    With a ``cache`` its rules may have no examples.

    Raises RuleError and UnknownVersion, as Engine does.
    """
    key = (rules, fixing)
    if key not in _engines:
        settings = Settings(
            rules.version,
            rules.select,
            rules.ignore,
            safe_only=fixing == "safe",
            rule_files=rules.rules,
            hardware=rules.hardware,
        )
        load_pack = KnownPacks(cache).load if cache else load
        engine = Engine(settings, load_pack)
        known = tuple(engine.rules)
        unknown = [code for code in rules.mentioned if not any(rule.startswith(code) for rule in known)]
        if unknown:  # rules that are off, or none at all
            choose(load_all(rules.rules, unknown, load_pack), unknown, ())
        _engines[key] = engine
    return _engines[key]


def check_document(
    rules: RuleSet, path: str, name: str, document: Document, project: Project, ignored: tuple[str, ...]
) -> Checked:
    """The findings of a file, with places in ``document.text``."""
    engine = engine_for(rules)
    checked = check(engine, path, name, document.text, project, ignored, rules.noqa)
    broken = [cell for cell in document.notebook.cells if cell.error] if document.notebook else []
    if not broken or SYNTAX not in engine.enabled or SYNTAX.startswith(ignored):
        return checked
    rule = engine.rules[SYNTAX].name
    more = []
    for cell in broken:
        row, message = cell.error or (1, "")
        row += cell.first - 1
        text = f"this cell is not valid Python ({message}): it is not looked at"
        more.append(Diagnostic(path, row, 1, row, 2, SYNTAX, rule, "error", text))
    found = sorted((*checked.found, *more), key=lambda item: (item.row, item.column, item.code))
    return Checked(tuple(found), checked.suppressed, checked.trouble)
