#!/bin/bash
# One GPU.
if [ $# != 1 ]; then
  echo "Usage: bash scripts/run_standalone_train_gpu.sh DATA_PATH"
  exit 1
fi
DATA_PATH=$(realpath "$1")
export DEVICE_ID=${DEVICE_ID:-0}

rm -rf train
mkdir train
cp ./*.py config.yaml train
cd train || exit 1
python train.py --device_target=GPU --data_path="$DATA_PATH" > train.log 2>&1 &
