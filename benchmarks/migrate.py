"""How long a migration takes, as a ratio to a bare LibCST parse in the same run.

    python -m benchmarks.migrate [--runs 3] [--project NAME …]

Prints, for the pinned projects together and with one process: the time of
``libcst.parse_module`` on their files that mention torch, the time of the
whole command ``npumigrate -i … -o …``, their ratio, and the command's peak
memory; then how many times as long it takes as with two processes, and the
time of the smallest project by itself.
"""

from __future__ import annotations

from benchmarks.whole_runs import (
    measured,
    options,
    print_ratios,
    print_two_processes,
    project_folders,
    together,
)


def main() -> None:
    chosen = options(__doc__).parse_args()
    folders = project_folders(chosen.project)
    with together(folders) as source:
        print_ratios(folders, source, [], chosen.runs, aim=0.50)
        print_two_processes(source, [], chosen.runs)
    (small,) = project_folders(["basicsr"])
    lines = sum(path.read_bytes().count(b"\n") for path in small.rglob("*.py"))
    print(f"{small.name}, {lines:,} lines: {measured(small, [])[0]:.2f} s (aim: about a second)")


if __name__ == "__main__":
    main()
