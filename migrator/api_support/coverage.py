"""How many public names of each torch version have an answer, and which have none."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from migrator.api_support import npu_names, torch_names
from migrator.api_support.evidence import of_area
from migrator.api_support.verdicts import judge, word
from migrator.api_support.versions import TorchVersion


class Coverage(NamedTuple):
    """The names of one version: by verdict, by what that is known from, and those without any."""

    names: int
    verdicts: dict[str, int]
    evidence: dict[str, int]
    unknown: tuple[tuple[str, str], ...]  # a name, and why nothing can be said of it

    @property
    def answered(self) -> float:
        """The part that has an answer, from 0 to 1."""
        return 1 - len(self.unknown) / self.names if self.names else 1.0


def coverage(version: TorchVersion, every: int = 1) -> Coverage:
    """Ask for each public name that a version surely has, or for one in ``every`` of them."""
    verdicts: Counter[str] = Counter()
    evidence: Counter[str] = Counter()
    unknown = []
    held = torch_names.of_version(version.text)
    names = [name for name in torch_names.listed() if held.present(name)][::every]
    for name in names:
        found = word(name, version)
        verdicts[found] += 1
        if found == "unknown":
            unknown.append((name, _reason(name, version)))
        else:
            evidence[basis(name, version)] += 1
    return Coverage(len(names), dict(verdicts), dict(evidence), tuple(unknown))


def basis(name: str, version: TorchVersion) -> str:
    """What an answer is known from: names, documents, operators, or its evidence's kind; '' of nothing."""
    if npu_names.look_up(name, version) is not None:
        return "names"
    verdict = judge(name, version)
    if verdict.evidence is not None:
        return verdict.evidence.kind
    return "documents" if verdict.documents else "operators" if verdict.kernel else ""


def _reason(name: str, version: TorchVersion) -> str:
    verdict = judge(name, version)
    if verdict.documents:
        return "the documents before and after disagree, and no operator of that name is known"
    if of_area(name.rpartition(".")[0]) is None and torch_names.of_version(version.text).kind(name) in (
        "function",
        "class",
    ):
        return "defined in a way that its source does not show"
    return "inherited from a class that was not read"
