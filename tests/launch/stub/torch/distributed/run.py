"""A launcher that keeps the promises of torchrun: own sessions, ended when one fails or it is asked."""

import argparse
import os
import signal
import subprocess
import sys
import time


def main(new_session: bool = True) -> None:
    parser = argparse.ArgumentParser()
    for option in ("nnodes", "node_rank", "nproc_per_node", "master_addr", "master_port"):
        parser.add_argument(f"--{option}")
    parser.add_argument("--no_python", action="store_true")
    parser.add_argument("--use_env", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if given.use_env is new_session or not given.no_python:
        raise SystemExit("wrong options for this launcher")
    local = int(given.nproc_per_node)
    ranks = []
    for rank in range(local):
        env = {
            **os.environ,
            "LOCAL_RANK": str(rank),
            "RANK": str(int(given.node_rank) * local + rank),
            "LOCAL_WORLD_SIZE": str(local),
            "WORLD_SIZE": str(int(given.nnodes) * local),
            "MASTER_ADDR": given.master_addr,
            "MASTER_PORT": given.master_port,
        }
        ranks.append(subprocess.Popen(given.command, env=env, start_new_session=new_session))

    def end(number: int) -> None:
        for process in ranks:
            if process.poll() is None:
                os.killpg(process.pid, number) if new_session else process.send_signal(number)
        for process in ranks:
            process.wait()

    def asked(number: int, _frame: object) -> None:
        end(number)
        sys.exit(1)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, asked)
    while any(process.poll() is None for process in ranks):
        if any(process.poll() for process in ranks):
            end(signal.SIGTERM)
            sys.exit(1)
        time.sleep(0.02)
    sys.exit(1 if any(process.returncode for process in ranks) else 0)


if __name__ == "__main__":
    main()
