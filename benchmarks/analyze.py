"""How long an analysis takes, as a ratio to a bare LibCST parse in the same run.

    python -m benchmarks.analyze [--runs 3] [--project NAME …] [--mode torch_apis]

Prints, for the pinned projects together and with one process: the time of ``libcst.parse_module`` on their
files that mention torch, the time of the whole command ``npumigrate analyze``, their ratio, and the command's
peak memory; then how many times as long it takes as with two processes.
"""

from __future__ import annotations

from benchmarks.whole_runs import options, print_ratios, print_two_processes, project_folders, together


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--mode", default="torch_apis")
    chosen = parser.parse_args()
    folders = project_folders(chosen.project)
    with together(folders) as source:
        print_ratios(folders, source, ["analyze", "-m", chosen.mode], chosen.runs, aim=0.30)
        print_two_processes(source, ["analyze", "-m", chosen.mode], chosen.runs)


if __name__ == "__main__":
    main()
