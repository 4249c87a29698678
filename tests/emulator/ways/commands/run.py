import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def start(task, options):
    command = [sys.executable, str(HERE / "worker.py"), "--task", str(task), *options]
    env = dict(os.environ, CUDA_VISIBLE_DEVICES="0")
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=2)
    args = parser.parse_args()
    for task in range(args.tasks):
        done = start(task, ["--device=cuda"])
        print(done.stdout, end="")
    subprocess.run("python worker.py --task 7 --device cuda", shell=True, check=True, cwd=HERE)


if __name__ == "__main__":
    main()
