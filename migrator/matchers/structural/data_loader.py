"""How a DataLoader feeds the NPU."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Rule
from migrator.names.tree import hands_on, is_off

_POSITIONS = (
    "dataset batch_size shuffle sampler batch_sampler num_workers collate_fn pin_memory drop_last".split()
)
_TRAINING = re.compile(r"train", re.IGNORECASE)
_OTHER = re.compile(r"val|test|eval|infer|pred|demo", re.IGNORECASE)


def _loaders(context: FileContext, rule: Rule) -> Iterator[tuple[ast.Call, dict[str, ast.expr]]]:
    """The calls of torch's DataLoader whose arguments are all written there."""
    for call, _ in context.calls_of(rule):
        if hands_on(call):
            continue
        given = dict(zip(_POSITIONS, call.args))
        given.update({str(k.arg): k.value for k in call.keywords})
        yield call, given


def find_slow(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Loaders without workers, pinned memory or workers that stay: one finding with what is missing."""
    for call, given in _loaders(context, rule):
        missing = []
        if is_off(given.get("num_workers")):
            missing.append("num_workers")
        if is_off(given.get("pin_memory")):
            missing.append("pin_memory=True")
        if not missing and is_off(given.get("persistent_workers")) and _is_training(context, call, given):
            missing.append("persistent_workers=True")
        if missing:
            message = rule.message.replace("{missing}", " and ".join(missing))
            yield found(context, rule, call, api=rule.match[0], message=message)


def find_last_batch(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Loaders for training whose last batch is smaller than the others."""
    for call, given in _loaders(context, rule):
        if is_off(given.get("drop_last")) and "batch_sampler" not in given:
            if _is_training(context, call, given) and not _is_one(given.get("batch_size")):
                yield found(context, rule, call, api=rule.match[0])


def _is_one(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value in (1, None))


def _is_training(context: FileContext, call: ast.Call, given: dict[str, ast.expr]) -> bool:
    """Whether a loader is for training: it shuffles, or what it is called or given says so."""
    statement = context.index.statement_of(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    texts = [context.index.segment(target) for target in targets]
    if "dataset" in given:
        texts.append(context.index.segment(given["dataset"]))
    function = context.index.function_of(call)
    texts.append(getattr(function, "name", ""))
    for text in texts:
        if _TRAINING.search(text):
            return True
        if _OTHER.search(text):
            return False
    return not is_off(given.get("shuffle"))
