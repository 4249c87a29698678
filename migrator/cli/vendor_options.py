"""Options of pytorch_gpu2npu.sh that have another name here, or that nothing needs.

Their sources are in docs/from_pytorch_gpu2npu.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from migrator.language import N_, _

_RENAMED = {"--rule": "--rules", "--target_model": "--target-model"}
_MODELARTS = N_("{option} is for ModelArts: npumigrate launch modelarts makes a boot file for the result")
_ELSEWHERE = {
    "-sim": N_("{option} is --replace-unsupported here"),
    "--similar": N_("{option} is --replace-unsupported here"),
    "-a": N_("{option} is not needed: mixed precision is migrated as it is, without apex"),
    "--amp_model": N_("{option} is not needed: mixed precision is migrated as it is, without apex"),
    "--modelarts": _MODELARTS,
}


def translated(arguments: Sequence[str]) -> tuple[list[str], str]:
    """The words of a migration's command line with our names, and what is told of one done in another way."""
    words = []
    for place, word in enumerate(arguments):
        behind = arguments[place + 1] if place + 1 < len(arguments) else "-"
        if word in _ELSEWHERE:
            return [], _(_ELSEWHERE[word], option=word)
        if word == "-m" and (behind.startswith("-") or behind == "distributed"):
            return [], _(_MODELARTS, option="-m without a script")
        name, equals, value = word.partition("=")
        words.append(_RENAMED.get(name, name) + equals + value)
    return words, ""
