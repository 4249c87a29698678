#!/bin/bash
# Several GPUs of one machine.
if [ $# != 2 ]; then
  echo "Usage: bash scripts/run_distribute_train_gpu.sh DEVICE_NUM DATA_PATH"
  exit 1
fi
export DEVICE_NUM=$1
DATA_PATH=$(realpath "$2")
export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0,1,2,3,4,5,6,7}

rm -rf train_parallel
mkdir train_parallel
cp ./*.py config.yaml train_parallel
cd train_parallel || exit 1
mpirun --allow-run-as-root -n $DEVICE_NUM --output-filename log_output --merge-stderr-to-stdout \
  python train.py --device_target=GPU --run_distribute=True --data_path="$DATA_PATH" > train.log 2>&1 &
