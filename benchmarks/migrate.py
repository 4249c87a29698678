"""How much a migration takes, as a ratio to a bare LibCST parse in the same run.

python -m benchmarks.migrate [--runs 3] [--project NAME … | --folder DIR …] [--reference CHECKOUT …]

Prints, for the pinned projects together and with one process, processor time and peak memory of the whole
command ``npumigrate -i … -o …``, side by side with other checkouts; then how many times as long one process
takes as two.
"""

from __future__ import annotations

from benchmarks.whole_runs import options, print_ratios, print_two_processes


def main() -> None:
    chosen = options(__doc__).parse_args()
    print_ratios(chosen, "migrate", aim=0.35)
    print_two_processes(chosen, "migrate")


if __name__ == "__main__":
    main()
