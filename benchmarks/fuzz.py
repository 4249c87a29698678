"""Mutates files for some minutes, and tells each for which something does not hold that must.

    python -m benchmarks.fuzz --minutes 60 FOLDER...

Files are taken from the folders (default: the pinned projects and the samples) and from the rules' examples,
mutated by a seed that is printed, and migrated in this process. A twentieth of the cases are files that
npumigrate is given: baselines, rule packs, rank tables, manifests, logs, profiles, traces. What fails is
written to ``--out``, one file each, with the reason in a ``.txt`` beside it. The exit code is 1 where
anything failed.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from random import Random

from benchmarks.projects import PROJECTS, fetch
from migrator.core.rules import rules_for
from migrator.core.settings import Settings
from migrator.files.document import file_type
from migrator.matchers.packs import load_all
from tests.fuzzing import recorded_files, settings_files
from tests.fuzzing.mutations import encoded, mutated
from tests.fuzzing.properties import broken

_GIVEN = 20  # one case in so many is a file that npumigrate is given
LARGEST = 60_000  # bytes: many small cases find more than a few large ones
ROOT = Path(__file__).parents[1]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--out", type=Path, default=Path("fuzz_finds"))
    parser.add_argument("--version", default="2.6")
    parser.add_argument(
        "--only", default="", help="only files that npumigrate is given, whose names hold this"
    )
    options = parser.parse_args()
    folders = options.folders or [*(fetch(project) for project in PROJECTS), ROOT / "samples"]
    seed = int(time.time()) if options.seed is None else options.seed
    random = Random(seed)
    texts = list(starts(folders))
    rules = rules_for(Settings(version=options.version))
    print(f"{len(texts)} files, seed {seed}", flush=True)
    end, cases, finds = time.monotonic() + 60 * options.minutes, 0, set[str]()
    kinds = [*settings_files.kinds(), *recorded_files.kinds()]
    kinds = [kind for kind in kinds if options.only in kind.file]
    each = 1 if options.only else _GIVEN
    scratch = options.out / "given"
    scratch.mkdir(parents=True, exist_ok=True)
    while time.monotonic() < end:
        cases += 1
        if cases % each == 0:
            kind = random.choice(kinds)
            name, data = kind.file, settings_files.changed(kind, random.choice(kind.starts), random)
            reason = settings_files.broken(kind, data, scratch)
        else:
            name, text = random.choice(texts)
            data = encoded(mutated(text, name.endswith(".py"), random), name.endswith(".py"), random)
            reason = broken(name, data, rules)
        if reason and reason[-200:] not in finds:
            finds.add(reason[-200:])
            keep(options.out, len(finds), name, data, reason)
            print(f"case {cases}, {name}: {reason.splitlines()[0][:200]}", flush=True)
    print(f"{cases} cases, {time.process_time():.0f} s of processor time, {len(finds)} kinds of finds")
    return 1 if finds else 0


def starts(folders: list[Path]) -> list[tuple[str, str]]:
    """The names and texts to begin with: files of the folders, and examples of the rules."""
    found = []
    for path in sorted(path for folder in folders for path in folder.rglob("*") if path.is_file()):
        if (path.suffix == ".py" or file_type(path.name)) and 0 < path.stat().st_size <= LARGEST:
            text = path.read_text(encoding="utf-8", errors="replace")
            if "cuda" in text.lower() or "gpu" in text.lower() or "nccl" in text:
                found.append((path.name, text))
    for rule in load_all():
        for example in rule.examples:
            found += [
                (example.get("file", "example.py"), example[key])
                for key in ("before", "unchanged")
                if key in example
            ]
    return found


def keep(folder: Path, number: int, name: str, data: bytes, reason: str) -> None:
    """Write down a case that failed."""
    folder.mkdir(parents=True, exist_ok=True)
    name = name.replace("/", "_")
    (folder / f"{number:03}_{name}").write_bytes(data)
    (folder / f"{number:03}_{name}.txt").write_text(reason)


if __name__ == "__main__":
    sys.exit(main())
