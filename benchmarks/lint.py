"""How much linting takes, as ratios measured in the same run.

python -m benchmarks.lint [--runs 3] [--hook | --project NAME … | --folder DIR …] [--reference CHECKOUT …]

Prints processor time, side by side with other checkouts: the whole process of a hook for a changed training
script of 500 lines with thirty findings, of ``api NAME`` and of ``--help``, against ``import typer``; a cold
lint of the pinned projects (or of the given folders) with one process, against a bare ``libcst.parse_module``
of their files that mention torch; and a warm run.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median

from benchmarks.whole_runs import (
    HERE,
    checkouts,
    commands,
    cost,
    options,
    print_ratios,
    project_folders,
    together,
)

# No .py: it is material, which no tool is to check.
CHANGED = Path(__file__).with_name("train_script.py.txt").read_text(encoding="utf-8")


def hook(runs: int, of: dict[str, Path]) -> None:
    """What short commands take, as multiples of an import of typer, all in turns."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "changed.py"
        short = {
            "hook, one changed script": ["lint", "-v2.6", "--isolated", str(file), "--cache-dir", scratch],
            "api NAME": ["api", "torch.cuda.synchronize"],
            "--help": ["--help"],
        }
        typer: list[float] = []
        times: dict[tuple[str, str], list[float]] = {}
        for turn in range(runs * 5 + 1):  # in the first, rule packs and byte code come into their caches
            typer.append(cost(HERE, ["-c", "import typer"]).seconds)
            for each, checkout in of.items():
                for name, arguments in short.items():
                    file.write_text(f"{CHANGED}# {turn} {each}\n")
                    taken = cost(checkout, ["-m", "migrator", *arguments]).seconds
                    times.setdefault((name, each), []).append(taken)
        print(f"import typer: {median(typer[1:]):.3f} s")
        for (name, each), taken_by in times.items():
            ratio = median(one / other for one, other in zip(taken_by[1:], typer[1:]))
            aim = " (aim: at most 2.2)" if name.startswith("hook") and each == "here" else ""
            print(f"{name}, {each}: {median(taken_by[1:]):.3f} s, ratio {ratio:.2f}{aim}")


def warm(runs: int, of: dict[str, Path], source: Path) -> None:
    """What a lint takes where nothing has changed since the last one."""
    for name, checkout in of.items():
        with tempfile.TemporaryDirectory() as scratch:
            arguments = [each for each in commands(source)["lint"] if each != "--no-cache"]
            arguments += ["--cache-dir", scratch]
            seconds = [cost(checkout, arguments).seconds for _ in range(runs + 1)]
        aim = " (aim: 0.5)" if name == "here" else ""
        print(f"lint, warm, {name}: {min(seconds[1:]):.2f} s{aim}")


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--hook", action="store_true", help="the hook alone")
    chosen = parser.parse_args()
    hook(chosen.runs, checkouts(chosen))
    if not chosen.hook:
        print_ratios(chosen, "lint", aim=0.25)
        with together(project_folders(chosen)) as source:
            warm(chosen.runs, checkouts(chosen), source)


if __name__ == "__main__":
    main()
