#!/bin/bash
# The accuracy of a checkpoint, on one GPU.
if [ $# != 2 ]; then
  echo "Usage: bash scripts/run_eval_gpu.sh DATA_PATH CHECKPOINT"
  exit 1
fi
python eval.py --device_target=GPU --data_path="$(realpath "$1")" --checkpoint="$(realpath "$2")"
