#!/usr/bin/env bash
# Four processes on this machine, one for each GPU.
cd "$(dirname "$0")" || exit
horovodrun -np 4 -H localhost:4 python benchmark.py --batch-size 64 --fp16-allreduce
