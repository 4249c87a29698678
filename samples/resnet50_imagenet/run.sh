#!/usr/bin/env bash
# Launch on all GPUs of one node:  ./run.sh /path/to/imagenet [extra options]
set -e

DATA=${1:?usage: run.sh /path/to/imagenet [options]}
shift

export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0,1,2,3,4,5,6,7}
export NCCL_DEBUG=${NCCL_DEBUG:-WARN}
NGPU=$(echo "$CUDA_VISIBLE_DEVICES" | tr ',' '\n' | wc -l)

torchrun --nnodes=1 --nproc_per_node="$NGPU" --master_port="${MASTER_PORT:-29500}" \
    "$(dirname "$0")/main.py" --data "$DATA" --dist-backend nccl --amp --batch-size 128 --lr 0.1 \
    --warmup-epochs 5 "$@"
