"""What a Python file shows of how its program is started: the training script, or with Horovod."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from migrator.files.document import is_notebook
from migrator.light import Frozen
from migrator.project.frameworks import TORCH, other_framework

_GUARD = re.compile(r"^if\s+__name__\s*==\s*['\"]__main__['\"]", re.M)
_RELATIVE_IMPORT = re.compile(r"^\s*from\s+\.", re.M)
# What a training script does, with words of which a text then has one, and what it weighs.
_TRAINS = (
    ((".backward(",), re.compile(r"\.backward\("), 8),
    ((".step(",), re.compile(r"\b(?:optimizer|optim|opt)\.step\("), 4),
    (
        ("init_process_group(", "DistributedDataParallel", "init_distributed"),
        re.compile(r"\binit_process_group\(|\bDistributedDataParallel\b|\binit_distributed"),
        6,
    ),
    (
        ("def train", "def main_worker", "Trainer("),
        re.compile(r"\bdef (?:train|main_worker|train_one_epoch|train_epoch)\b|\bTrainer\("),
        4,
    ),
    (("DataLoader(",), re.compile(r"\bDataLoader\("), 2),
)
_OPTION_WORDS = ("ArgumentParser(", "argparse", "@click.", "@hydra.", "Typer(", "absl", "fire.Fire(")
_OPTIONS = re.compile(r"\bArgumentParser\(|\bargparse\b|@click\.|@hydra\.|\bTyper\(|\babsl\b|\bfire\.Fire\(")
_NAMES = (
    (re.compile(r"(?:^|[_\W])(?:pre)?train(?:er|ing)?(?:[_\W]|$)", re.I), 10),
    (re.compile(r"^main(?:[_\W]|$)", re.I), 8),
    (re.compile(r"^(?:run|finetune|fine_tune)(?:[_\W]|$)", re.I), 5),
    (
        re.compile(
            r"(?:^|[_\W])(?:eval|evaluate|test|tests|validate|val|infer|inference|predict|demo|export|convert|"
            r"benchmark|bench|profile|visuali[sz]e|plot|download|prepare|preprocess|setup|conftest)(?:[_\W]|$)",
            re.I,
        ),
        -12,
    ),
)
# At the margin of a file: a loop, or what is called there.
_LOOP = re.compile(r"^(?:for|while|with)\b|^[^\s#][^\n]*\.backward\(", re.M)
_CALLED = re.compile(r"^(\w[\w, ]* = )?([\w.]+)\(", re.M)
_RUNS = re.compile(r"train|fit|run|main|launch|Fire")
_DOCSTRING = re.compile(r"""^[rR]?(\"{3}|'{3})[\s\S]*?\1""", re.M)  # its lines are no statements
_ASIDE = frozenset("test tests testing docs doc third_party thirdparty vendor benchmarks scripts_old".split())
_PER_FOLDER = 2


class Candidate(Frozen):
    """A file that can be started, and how much it looks like the training script.

    Of one without a score only the ``framework`` is known, which is not PyTorch.
    """

    name: str
    score: int
    framework: str = ""


def candidate(name: str, text: str, framework: str = TORCH) -> Candidate | None:
    """What a file's name and text say of it; None where it cannot be the script that is started.

    Nor is it one of another ``framework``.

    A script trains (calls ``backward`` or sets up a process group), or has a
    main block, or runs something, and a name that says train, main or run.
    """
    path = PurePosixPath(name)
    guarded = "__main__" in text and bool(_GUARD.search(text))
    by_name = sum(weight for pattern, weight in _NAMES if pattern.search(path.stem))
    if not guarded:
        if by_name < 8 and ".backward(" not in text:
            return None  # as most are: nothing trains, whatever else it holds
        text = _DOCSTRING.sub("", text)
    if path.suffix != ".py" or path.name in ("setup.py", "__init__.py", "conftest.py"):
        return None
    if (other_framework(text) or TORCH) != framework:
        return None
    if not guarded:  # then it starts by a loop, main() or x = train(y)
        # The training itself may lie in what the script imports: then its name says it, and what it runs.
        trains = ".backward(" in text
        starts = (
            (_RUNS.search(called) and (trains or not target))
            or (trains and not (target or "." in called or called == "print"))
            for target, called in _CALLED.findall(text)
        )
        if not (_LOOP.search(text) or any(starts)):
            return None
    by_text = sum(weight for words, pattern, weight in _TRAINS if _fits(text, words, pattern))
    options = _fits(text, _OPTION_WORDS, _OPTIONS)
    score = by_name + by_text + 5 * guarded + 3 * options - _PER_FOLDER * (len(path.parts) - 1)
    if _ASIDE & set(path.parts[:-1]):
        score -= 12
    # A library's module may try itself out in a main block: a name, options or data make a program of it.
    if by_name < 5 and (by_text < 6 or (guarded and not options and by_text < 14)):
        return None
    return Candidate(name, score) if score > 0 else None


def _fits(text: str, words: Iterable[str], pattern: re.Pattern[str]) -> bool:
    """Whether a pattern fits somewhere; plain words are looked for first, which is quicker."""
    return any(word in text for word in words) and pattern.search(text) is not None


def has_relative_imports(text: str) -> bool:
    """Whether a file can only be started as a module of its package."""
    return bool(_RELATIVE_IMPORT.search(text))


def ranked(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The likeliest first; of equals the one nearest to the top, then by name."""
    return tuple(sorted(candidates, key=lambda one: (-one.score, one.name.count("/"), one.name)))


def scan_start(name: str, text: str) -> Candidate | None:
    """Whether a file is a script, or of another framework; None for others. A notebook is not started."""
    if is_notebook(name):
        return None
    found = candidate(name, text) or Candidate(name, 0, framework=other_framework(text))
    return found if found.score or found.framework else None
