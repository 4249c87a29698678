"""Kills migrate, analyze, ``lint --fix`` and fleet at random moments, and tells what is wrong afterwards.

    python -m benchmarks.faults --kills 100 --of fleet

The moments are spread over the whole of a run. The input must be as it was, no part of a result may look
like one, what the command has started must end, and the same command once more must make what a run makes
that nobody kills, leave no file of the killed one, and not do again what a fleet had finished. A command
whose worker is killed ends well. The exit code is 1 where anything is wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from tests.faults.killing import COMMANDS, Trial


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100, help="of each command")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    names = [command.name for command in COMMANDS]
    parser.add_argument("--of", choices=names, action="append", help="only this command; may be repeated")
    options = parser.parse_args()
    random, count = Random(options.seed), 0
    for command in (each for each in COMMANDS if each.name in (options.of or names)):
        with tempfile.TemporaryDirectory() as folder:
            trial = Trial(Path(folder), command)
            moments = [(number + random.random()) / options.kills for number in range(options.kills)]
            wrong = [fault for moment in moments for fault in trial.faults(random, moment)]
        count += len(wrong)
        print(f"{command.name}: {options.kills} kills within {trial.seconds:.1f} s, {len(wrong)} faults")
        print("  " + ", ".join(f"{stage}: {number}" for stage, number in sorted(trial.stages.items())))
        for fault in sorted(set(wrong)):
            print(f"  {fault} ({wrong.count(fault)})")
    print(f"seed {options.seed}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
