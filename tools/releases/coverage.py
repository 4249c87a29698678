"""How many public names of each torch version have an answer, from what it is known, and which have none.

python -m tools.releases.coverage [--version VERSION] [--unknown]
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import NamedTuple

from migrator.api_support import torch_names
from migrator.api_support.verdicts import basis, judge, of_area, word
from migrator.api_support.versions import TorchVersion, known, resolve


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


def main() -> None:
    """Print the counts, and on request the names without an answer with the reason."""
    parser = argparse.ArgumentParser(prog="python -m tools.releases.coverage")
    parser.add_argument("-v", "--version", metavar="VERSION", action="append", help="only this torch version")
    parser.add_argument("--unknown", action="store_true", help="list the names without an answer")
    options = parser.parse_args()
    for one in map(resolve, options.version) if options.version else known():
        held = coverage(one)
        print(f"torch {one.text}: {held.answered:.1%} of {held.names:,} names have an answer")
        for words in (held.verdicts, held.evidence):
            print("  " + ", ".join(f"{word} {count:,}" for word, count in sorted(words.items())))
        for name, reason in held.unknown if options.unknown else ():
            print(f"  {name}: {reason}")


if __name__ == "__main__":
    main()
