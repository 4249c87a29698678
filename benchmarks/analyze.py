"""How much an analysis takes, as a ratio to a bare LibCST parse in the same run.

python -m benchmarks.analyze [--runs 3] [--project NAME … | --folder DIR …] [--reference CHECKOUT …]

Prints of ``npumigrate analyze -m torch_apis`` what ``benchmarks.migrate`` does of a migration.
"""

from __future__ import annotations

from benchmarks.whole_runs import options, print_ratios, print_two_processes


def main() -> None:
    chosen = options(__doc__).parse_args()
    print_ratios(chosen, "analyze", aim=0.30)
    print_two_processes(chosen, "analyze")


if __name__ == "__main__":
    main()
