"""A program of several ranks, without torch: says what it was given, then does what it is told."""

import json
import os
import signal
import sys
import time
from typing import TextIO

rank = int(os.environ.get("RANK", 0))
what = sys.argv[1] if len(sys.argv) > 1 else ""
names = (
    "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK MASTER_ADDR MASTER_PORT RANK_TABLE_FILE "
    "ASCEND_RT_VISIBLE_DEVICES HCCL_CONNECT_TIMEOUT"
).split()
cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def say(line: str, stream: TextIO = sys.stdout) -> None:
    stream.write(line + "\n")  # at once: print of an unbuffered Python writes the end of the line on its own
    stream.flush()


try:
    asked = [os.environ.get(name) for name in sys.argv[1:]]
    say(
        json.dumps(
            {
                "asked": asked,
                "args": sys.argv[1:],
                "cores": cores,
                **{name: os.environ.get(name) for name in names},
            }
        )
    )
    say(f"rank {rank} on stderr", sys.stderr)
    if what == "fail" and rank == 1:
        sys.exit(7)
    if "exit7" in sys.argv:
        sys.exit(7)
    if what == "killed" and rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "stubborn":
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        say("{ignores}")
    if what in ("fail", "killed", "wait", "stubborn"):
        time.sleep(60)
        say(f"rank {rank} was not ended")
except KeyboardInterrupt:
    say(f"rank {rank} interrupted")
    sys.exit(1)
