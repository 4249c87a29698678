"""Command lines of containers: what is about GPUs gets its NPU equivalent, as far as it is understood."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from migrator.api_support import env_vars
from migrator.launch import mpi
from migrator.launch.mpi import LAUNCHERS, MpiLineError, plan
from migrator.launch.rank_table import RankTableError

# An option's name, as one word with its value, before it, or alone in a list of words.
_BACKEND = r"--?[\w-]*backend"
_DEVICE = r"--?(?:[\w-]*[-_])?(?:device|device[-_]type|accelerator)"
_VALUES = (
    (re.compile(rf"(?<![\w-])({_BACKEND}[ =]+[\"']?)nccl\b(?![\w.:/-])"), r"\g<1>hccl"),
    (re.compile(rf"(?<![\w-])({_DEVICE}[ =]+[\"']?)cuda\b(?![\w./-])"), r"\g<1>npu"),
)
_PAIRS = (
    (re.compile(rf"\A{_BACKEND}\Z"), re.compile(r"nccl\Z"), "hccl"),
    (re.compile(rf"\A{_DEVICE}\Z"), re.compile(r"cuda(?=:\d+\Z|\Z)"), "npu"),
)
_PROCESSES = re.compile(r"(--nproc(?:[-_]per[-_]node)?[ =]+[\"']?)(gpu|auto|\d+)\b")
_PROCESSES_ALONE = re.compile(r"--nproc[-_]per[-_]node\Z")
_SMI = re.compile(r"(?<![\w./-])nvidia-smi(?=\s*(?:$|[;&|\n]))")
_SETTING = re.compile(r"(?<![\w$-])([A-Z][A-Z0-9_]+)=(\"[^\"]*\"|'[^']*'|[^\s;&|\"']*)")
_LEFT = re.compile(
    # From the beginning of a word only: its middle cannot fit where that does not.
    r"(?<![\w./:=-])[\w./:=-]*(?:cuda|nccl|nvidia|gpus?\b|nvcc|nsys|\bncu\b|infiniband|mellanox)[\w./:=-]*",
    re.IGNORECASE,
)
_LAUNCHER = re.compile(rf"(?<![\w./-])(?:[\w./-]*/)?(?:{'|'.join(map(re.escape, LAUNCHERS))})(?=\s|\Z)")
_SHELL = re.compile(r"[;&|<>()$`\n]")


def starts_ranks(words: Sequence[str]) -> bool:
    """Whether torchrun starts the ranks and gets no number of them for a pod."""
    text = " ".join(words)
    torchrun = re.search(r"\btorchrun\b|\btorch\.distributed\.(?:run|launch)\b", text)
    return bool(torchrun) and not re.search(r"--nproc[-_]per[-_]node", text)


def for_npus(text: str, npus: int) -> str:
    """A command, or a line of shell, with its NPU equivalents: backends, devices, variables, ``nvidia-smi``.

    ``--nproc_per_node gpu`` and ``auto`` count devices that CUDA knows: they become the number of NPUs.
    """
    for pattern, new in _VALUES:
        text = pattern.sub(new, text)
    if npus:
        text = _PROCESSES.sub(
            lambda m: m.group(1) + (m.group(2) if m.group(2).isdigit() else str(npus)), text
        )
    text = _SMI.sub("npu-smi info", text)
    return _SETTING.sub(_renamed, text)


def _renamed(match: re.Match[str]) -> str:
    name, value = match.groups()
    known = env_vars.look_up(name)
    if known is None or not known.npu or not env_vars.carries_over(known, value.strip("\"'")):
        return match.group()
    return f"{known.npu}={value}"


def words_for_npus(words: Sequence[str], npus: int) -> list[str]:
    """The same for a list of words, where an option's value may be the next word."""
    result = [for_npus(word, npus) for word in words]
    for number in range(1, len(result)):
        before, word = result[number - 1], result[number]
        for option, value, new in _PAIRS:
            if option.match(before):
                result[number] = value.sub(new, word)
        if npus and _PROCESSES_ALONE.match(before) and word in ("gpu", "auto"):
            result[number] = str(npus)
    return result


def launched(words: Sequence[str]) -> tuple[str, tuple[str, ...]] | None:
    """What an ``mpirun`` or ``horovodrun`` on one host becomes, with what is to be said of it.

    None where it is no such line, names hosts, or is not understood.
    """
    if len(words) == 1 and not _SHELL.search(words[0].strip()):
        try:
            words = shlex.split(words[0])
        except ValueError:
            return None
    if not words or not mpi.is_launcher(words[0]):
        return None
    try:
        found = plan(words, _no_file)
    except (MpiLineError, RankTableError):
        return None
    return (found.commands[0], found.notes) if [name for name, _ in found.hosts] == ["localhost"] else None


def _no_file(name: str) -> str:
    raise MpiLineError("{name} is a file of the pod", name=name)


def is_launcher(word: str) -> bool:
    """Whether a word is, or a line of shell holds, a launcher of MPI."""
    return bool(_LAUNCHER.search(word))


def process_counts(words: Sequence[str]) -> list[int]:
    """The numbers of ``--nproc_per_node`` in a command."""
    text = " ".join(words)
    return [int(found) for _, found in _PROCESSES.findall(text) if found.isdigit()]


def about_gpus(words: Sequence[str]) -> list[str]:
    """What in a command still speaks of GPUs, each once."""
    found = [match.group() for word in words for match in _LEFT.finditer(word)]
    return list(dict.fromkeys(found))
