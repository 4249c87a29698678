"""What the documents of torch_npu say of the torch APIs that a file uses."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from typing import Any

from migrator.api_support import support
from migrator.api_support.versions import TorchVersion
from migrator.engine.context import FileContext, Found, found
from migrator.engine.matching import pattern_fits
from migrator.engine.packs import Rule

_COMMON = frozenset("torch nn functional utils optim distributed Tensor ops fx autograd cuda npu".split())


@cache
def trigger_words(version: TorchVersion) -> frozenset[str]:
    """For each unsupported API a word of its name that supported ones do not share."""
    return frozenset(_by_trigger(version))


def may_be_used(version: TorchVersion, words: set[str]) -> bool:
    """Whether a file with these words can use an unsupported API.

    However it is imported, every part of an API's name is written somewhere in
    the file.
    """
    triggers = _by_trigger(version)
    return any(words.issuperset(parts) for word in words.intersection(triggers) for parts in triggers[word])


@cache
def _by_trigger(version: TorchVersion) -> dict[str, list[tuple[str, ...]]]:
    """The parts of the names of unsupported APIs, by the rarest of them.

    ``Linear`` would start a search in every file because of
    ``torch.ao.nn.qat.Linear``; ``qat`` does not.
    """
    unsupported = {api for api in support.apis(version, "unsupported") if not _is_member(api)}
    supported = support.apis(version, "supported", "partial")
    shared = {part for api in supported for part in api.split(".")} | _COMMON
    triggers: dict[str, list[tuple[str, ...]]] = {}
    for api in unsupported:
        parts = tuple(api.split("."))
        own = [part for part in parts if part not in shared and len(part) > 2]
        if own:
            triggers.setdefault(own[-1], []).append(parts)
    return triggers


def _is_member(api: str) -> bool:
    """Whether an API is a member of a class: found by its receiver, not by a dotted name."""
    return any(part[:1].isupper() for part in api.split(".")[:-1])


def find(context: FileContext, rule: Rule) -> Iterator[Found]:
    """Names of APIs that the documents call unsupported, with what the wheel registers beside it."""
    seen: set[int] = set()
    for ref in context.index.refs:
        node: Any = ref
        while isinstance(node, (ast.Attribute, ast.Name)):
            inner = node is not ref and not getattr(node, "attr", getattr(node, "id", ""))[:1].isupper()
            if isinstance(node.ctx, ast.Load) and id(node) not in seen and not inner:
                outcome = _judged(context, rule, node)
                if outcome is not None:
                    seen.add(id(node))
                    yield outcome
                    break
            if isinstance(node, ast.Name):
                break
            node = node.value


def _judged(context: FileContext, rule: Rule, node: Any) -> Found | None:
    name = context.index.qualified_name(node)
    if not name.startswith("torch.") or name.startswith(("torch.cuda", "torch.backends.c", "torch.npu")):
        return None
    known = support.look_up(name, context.version)
    if known is None or known.status != "unsupported" or any(pattern_fits(p, name) for p in rule.excluded):
        return None
    where = f" (as of torch {known.neighbour})" if known.neighbour else ""
    if known.kernel == "kernel":
        detail = ", though torch_npu registers a kernel for it"
    elif known.kernel == "composite":
        detail = ", though torch builds it from other operators"
    elif known.kernel == "none":
        detail = ", and torch_npu registers no kernel: it runs on the CPU, or raises"
    else:
        detail = ""
    doubtful = known.kernel in ("kernel", "composite") or "docs_untested" in known.limits
    return found(
        context,
        rule,
        node,
        api=name,
        status="unsupported",
        severity="info" if doubtful else "",
        message=f"the documents call {name} unsupported{where}{detail}",
    )
