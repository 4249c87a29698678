#!/usr/bin/env bash
# Starts the program on the NPUs of this machine, one process (rank) for each NPU; on several machines too.
# Written by npumigrate. `bash run_distributed_npu.sh --help` explains the options.
set -u

# What is started: a path below this script's folder; for a module of a package also its name, and the folder
# that Python has to look in.
entry=@ENTRY@
module=@MODULE@
module_root=@MODULE_ROOT@

# How the ranks of each script come to be. launcher: this script starts them; program: the script does, from one
# process; none: it shows no use of ranks; unseen: its training is in a package. What the script gets before its own arguments: %NAME% is filled in.
# Under which other launcher's names it reads its rank.
ranks_by=unknown program_options=() rank_names=''
look_up() {
  case $1 in
@WAYS@  esac
}

usage() {
  cat <<'END'
bash run_distributed_npu.sh [options] [-- arguments of the program]

  --nproc N         ranks on this machine; default: one for each NPU (one, if the program shows no use of ranks)
  --devices 0,1     use these NPUs only (sets ASCEND_RT_VISIBLE_DEVICES)
  --nnodes N        number of machines; start this script on each of them
  --node-rank R     which machine this is, from 0
  --master-addr A   address of machine 0; needed for several machines
  --master-port P   a free port of machine 0; default 29500, or any free one where there is one machine only
  --bind-cores      bind each rank to the cores that are near its NPU (aarch64)
  --log-dir D       folder for one log a rank; default npu_logs/<time>
  --entry FILE      start another script
  --force           start several ranks of a program that shows no use of them
  --dry-run         show what would be done and stop

Exit code: the program's; that of the rank that failed first; 128 + n after signal n; 2 for wrong use.
The Python is $PYTHON, else the first python or python3 in PATH.
END
}

say() { printf 'run_distributed_npu.sh: %s\n' "$*" >&2; }
refuse() { say "$*"; exit 2; }

# ---------------------------------------------------------------------------------------------------------------
# One rank: this script again, started by the launcher with RANK and LOCAL_RANK set.
# rank <state folder> <log folder> <bind: 0 or 1> <rank names> <number of the words that start the program>
#   <number of its options> words… options… arguments…

# The cores near an NPU, as `npu-smi info -t topo` lists them: "NPU0 … 144-167". Nothing where it does not.
cores_by_npu_smi() {
  npu-smi info -t topo 2>/dev/null | awk -v npu="NPU$1" '$1 == npu && $NF ~ /^[0-9][0-9,-]*$/ { print $NF; exit }'
}

# Cores such as 0-3,8 one a line.
list_cores() { awk -v cores="$1" 'BEGIN {
  n = split(cores, part, ",")
  for (i = 1; i <= n; i++) { m = split(part[i], end, "-"); for (c = end[1] + 0; c <= end[m] + 0; c++) print c }
}'; }

# The cores of one NUMA node, one a line; nodes are counted from 0 in the order of their numbers.
node_cores() { lscpu -p=CPU,NODE | awk -F, -v wanted="$1" '
  /^#/ { next }
  { node = $2 == "" ? 0 : $2 + 0; if (!(node in seen)) { seen[node] = 1; if (node > last) last = node } cpu[++n] = $1; at[n] = node }
  END { k = -1; for (i = 0; i <= last; i++) if (i in seen && ++k == wanted) for (j = 1; j <= n; j++) if (at[j] == i) print cpu[j] }'
}
count_nodes() { lscpu -p=CPU,NODE | awk -F, '!/^#/ { seen[$2] } END { for (n in seen) k++; print k + 0 }'; }

# Part $1 (from 0) of $2 equal parts of the lines that come in, joined by commas.
share() { awk -v part="$1" -v parts="$2" '{ line[NR] = $0 }
  END { for (i = int(part * NR / parts) + 1; i <= int((part + 1) * NR / parts); i++) printf "%s%s", k++ ? "," : "", line[i] }'; }

# The cores of this rank. Ranks whose NPUs are near the same cores share them evenly.
my_cores() {
  local -i ranks=$LOCAL_WORLD_SIZE me=$LOCAL_RANK nodes node first after i before=0 sharing=0
  local ids near other
  IFS=, read -r -a ids <<<"${ASCEND_RT_VISIBLE_DEVICES:-$(seq -s, 0 $((ranks - 1)))}"
  near=$(cores_by_npu_smi "${ids[me]:-$me}")
  if [ -n "$near" ]; then
    for ((i = 0; i < ranks; i++)); do
      other=$(cores_by_npu_smi "${ids[i]:-$i}")
      if [ "$other" = "$near" ]; then sharing+=1; if ((i < me)); then before+=1; fi; fi
    done
    list_cores "$near" | share "$before" "$sharing"
    return
  fi
  # Without npu-smi's word: NPUs in their order over the nodes in theirs.
  nodes=$(count_nodes)
  ((nodes > 0)) || return
  node=$((me * nodes / ranks))
  first=$(((node * ranks + nodes - 1) / nodes))
  after=$((((node + 1) * ranks + nodes - 1) / nodes))
  node_cores "$node" | share $((me - first)) $((after - first))
}

# The words with the values of now in the places of the marks, in the array "filled".
fill() {
  local word name
  filled=()
  for word in "$@"; do
    for name in NPROC NNODES NODE_RANK MASTER_ADDR MASTER_PORT RANK LOCAL_RANK WORLD_SIZE; do
      word=${word//%$name%/${!name:-}}
    done
    filled+=("$word")
  done
}

# The rank under another launcher's names.
name_rank() {
  case $1 in
  OMPI | MV2)
    export "$1_COMM_WORLD_RANK=$RANK" "$1_COMM_WORLD_SIZE=$WORLD_SIZE"
    export "$1_COMM_WORLD_LOCAL_RANK=$LOCAL_RANK" "$1_COMM_WORLD_LOCAL_SIZE=$LOCAL_WORLD_SIZE"
    ;;
  PMI) export PMI_RANK=$RANK PMI_SIZE=$WORLD_SIZE MPI_LOCALRANKID=$LOCAL_RANK MPI_LOCALNRANKS=$LOCAL_WORLD_SIZE ;;
  SLURM) export SLURM_PROCID=$RANK SLURM_NTASKS=$WORLD_SIZE SLURM_STEP_NUM_TASKS=$WORLD_SIZE SLURM_LOCALID=$LOCAL_RANK ;;
  esac
}

run_rank() {
  local state=$1 logs=$2 bind=$3 names=$4 words=$5 options=$6 alone=() cores name log copies i code=0
  shift 6
  fill "${@:words+1:options}"
  set -- "${@:1:words}" ${filled[@]+"${filled[@]}"} "${@:words+options+1}"
  if [ "$names" = program ]; then
    alone=(env -u RANK -u LOCAL_RANK -u WORLD_SIZE -u LOCAL_WORLD_SIZE)
  else
    name_rank "$names"
  fi
  if [ "$bind" = 1 ]; then
    cores=$(my_cores)
    if [ -n "$cores" ] && taskset -p -c "$cores" $$ >/dev/null; then
      say "rank $RANK: cores $cores"
    else
      say "rank $RANK: its cores could not be bound"
    fi
  fi
  # Copies of what it says go to the log, until it has said its last words.
  log=$logs/rank_$RANK.log
  mkfifo "$state/out_$RANK" "$state/err_$RANK"
  (trap '' INT TERM HUP && exec tee -a "$log" <"$state/out_$RANK") &
  copies=($!)
  (trap '' INT TERM HUP && exec tee -a "$log" <"$state/err_$RANK" >&2) &
  copies+=($!)
  # A group of its own: Ctrl-C ends it as usual (bash lets what it starts aside ignore that otherwise), and each
  # signal comes once.
  set -m
  ${alone[@]+"${alone[@]}"} "$@" >"$state/out_$RANK" 2>"$state/err_$RANK" &
  child=$!
  set +m
  echo "$$ $child" >"$state/rank_$RANK.pids"
  for name in INT TERM HUP; do
    # shellcheck disable=SC2064 # the name of now
    trap "kill -s $name -- -$child 2>/dev/null" "$name"
  done
  while :; do
    wait "$child" 2>/dev/null
    code=$?
    kill -0 "$child" 2>/dev/null || break
  done
  rm -f "$state/rank_$RANK.pids"
  for ((i = 0; i < 50; i++)); do # not for ever: something that the program left behind may hold them open
    kill -0 "${copies[@]}" 2>/dev/null || break
    sleep 0.1
  done
  # The first one to fail says with which code; those that are ended because of it come later.
  if [ "$code" != 0 ]; then (set -o noclobber && echo "$RANK $code" >"$state/failed") 2>/dev/null; fi
  exit "$code"
}

if [ "${1:-}" = __rank ]; then
  shift
  run_rank "$@"
fi

# ---------------------------------------------------------------------------------------------------------------
# Options

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd) || exit 2
self=$here/$(basename -- "${BASH_SOURCE[0]}")
nproc='' nnodes=1 node_rank='' master_addr='' master_port='' devices='' bind=0 log_dir='' dry_run=0 force=0 signal=''

whole() { case $2 in '' | *[!0-9]*) refuse "$1 needs a whole number, not '$2'" ;; esac; }

while [ $# -gt 0 ]; do
  case $1 in
  --help | -h) usage; exit 0 ;;
  --bind-cores) bind=1; shift; continue ;;
  --dry-run) dry_run=1; shift; continue ;;
  --force) force=1; shift; continue ;;
  --) shift; break ;;
  --*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
  --*) ;;
  *) refuse "unexpected '$1'; the program's arguments stand behind -- (--help explains)" ;;
  esac
  case $1 in
  --nproc | --devices | --nnodes | --node-rank | --master-addr | --master-port | --log-dir | --entry) ;;
  *) refuse "there is no option $1; the program's arguments stand behind -- (--help explains)" ;;
  esac
  [ $# -ge 2 ] || refuse "$1 needs a value"
  case $1 in
  --nproc) whole "$1" "$2"; nproc=$2 ;;
  --devices) devices=$2 ;;
  --nnodes) whole "$1" "$2"; nnodes=$2 ;;
  --node-rank) whole "$1" "$2"; node_rank=$2 ;;
  --master-addr) master_addr=$2 ;;
  --master-port) whole "$1" "$2"; master_port=$2 ;;
  --log-dir) log_dir=$2 ;;
  --entry) entry=$2 module='' ;;
  esac
  shift 2
done

[ "$nnodes" -ge 1 ] || refuse "--nnodes must be 1 or more"
if [ "$nnodes" -gt 1 ]; then
  [ -n "$master_addr" ] || refuse "--nnodes $nnodes needs --master-addr: the address of machine 0"
  [ -n "$node_rank" ] || refuse "--nnodes $nnodes needs --node-rank: 0 to $((nnodes - 1)), another one on each machine"
fi
node_rank=${node_rank:-0}
[ "$node_rank" -lt "$nnodes" ] || refuse "--node-rank must be below --nnodes $nnodes"
case $devices in
*[!0-9,]* | ,* | *, | *,,*) refuse "--devices needs numbers with commas, such as 0,1, not '$devices'" ;;
esac

if [ -f "$here/$entry" ]; then script=$here/$entry; else script=$entry; fi
[ -f "$script" ] || refuse "there is no $entry in $here"
known=${entry#"$here/"}
look_up "${known#./}"

python=${PYTHON:-$(command -v python || command -v python3)}
[ -n "$python" ] || refuse "no python in PATH"

# Without importing torch, which takes seconds: what is installed, and which launcher torch has.
launcher=$("$python" -c '
import importlib.util, os
torch = importlib.util.find_spec("torch")
if torch is None:
    print("torch")
elif importlib.util.find_spec("torch_npu") is None:
    print("torch_npu")
else:
    run = os.path.join(os.path.dirname(torch.origin), "distributed", "run.py")
    print("torch.distributed.run" if os.path.exists(run) else "torch.distributed.launch")
') || refuse "$python does not run"
case $launcher in
torch | torch_npu) refuse "$launcher is not installed for $python" ;;
esac

# ---------------------------------------------------------------------------------------------------------------
# Environment. What is set already is kept.

# CANN's own variables, unless they are there.
cann=${ASCEND_HOME_PATH:-}
if [ -z "$cann" ]; then
  for folder in "${ASCEND_TOOLKIT_HOME:-/usr/local/Ascend/ascend-toolkit}" {/usr/local,/opt,"${HOME:-}"}/Ascend/{ascend-toolkit,cann}; do
    if [ -f "$folder/set_env.sh" ]; then
      set +u
      # shellcheck disable=SC1091
      . "$folder/set_env.sh"
      set -u
      cann=$folder
      break
    fi
  done
fi

# The first thing that keeps a program from the NPUs, in one line; `npumigrate doctor` looks for more.
has_library() {
  local folder folders
  IFS=: read -r -a folders <<<"${LD_LIBRARY_PATH:-}"
  for folder in "${folders[@]:-}"; do
    if [ -e "$folder/$1" ]; then return; fi
  done
  return 1
}
fault=''
if [ -z "$cann" ]; then
  fault=@SET_ENV_MISSING@
elif ! has_library libhccl.so; then
  fault=@HCCL_MISSING@
elif [ -n "${NPUMIGRATE_EMULATOR:-}" ]; then
  : # emulated NPUs have no device files
elif [ ! -e /dev/davinci_manager ]; then
  fault=@NO_DEVICE@
elif [ ! -r /dev/davinci_manager ] || [ ! -w /dev/davinci_manager ]; then
  # shellcheck disable=SC2016 # for a person
  fault=@DEVICE_PERMISSION@
fi

variables=()
# shellcheck disable=SC2329 # in the lines below
set_default() {
  if [ -z "${!1:-}" ]; then export "$1=$2"; fi
  variables+=("$1")
}
if [ -n "$devices" ]; then
  export ASCEND_RT_VISIBLE_DEVICES=$devices
  variables+=(ASCEND_RT_VISIBLE_DEVICES)
fi
@VARIABLES@
# ---------------------------------------------------------------------------------------------------------------
# Ranks and port

if [ "$ranks_by" = none ] || [ "$ranks_by" = unseen ]; then
  nproc=${nproc:-1}
  if [ "$nproc" -gt 1 ] && [ "$force$ranks_by" = 0none ]; then
    refuse "$entry shows no use of ranks: each of the $nproc would do the whole work (--force starts them all the same)"
  fi
fi
if [ -z "$nproc" ]; then
  visible=${ASCEND_RT_VISIBLE_DEVICES:-}
  if [ -n "$visible" ]; then
    commas=${visible//[^,]/}
    nproc=$((${#commas} + 1))
  else
    nproc=$("$python" -c 'import torch, torch_npu; print(torch.npu.device_count())' 2>/dev/null | tail -n 1)
  fi
  case $nproc in '' | 0 | *[!0-9]*) refuse "no NPU was found: ${fault:-is the driver installed (npu-smi info)?}; --nproc gives the number of ranks" ;; esac
fi
[ "$nproc" -ge 1 ] || refuse "--nproc must be 1 or more"

if [ -z "$master_port" ]; then
  master_port=29500
  if [ "$nnodes" = 1 ]; then # so that two programs on one machine do not meet
    master_port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  fi
fi
if [ "$ranks_by" = program ]; then
  # It counts the NPUs that it sees.
  IFS=, read -r -a seen <<<"${ASCEND_RT_VISIBLE_DEVICES:-$(seq -s, 0 $((nproc - 1)))}"
  [ "$nproc" -le ${#seen[@]} ] || refuse "--nproc $nproc is more than the NPUs of ASCEND_RT_VISIBLE_DEVICES"
  ASCEND_RT_VISIBLE_DEVICES=$(IFS=, && echo "${seen[*]:0:nproc}")
  export ASCEND_RT_VISIBLE_DEVICES MASTER_ADDR=${master_addr:-127.0.0.1} MASTER_PORT=$master_port
  [ -n "$devices" ] || variables+=(ASCEND_RT_VISIBLE_DEVICES)
  variables+=(MASTER_ADDR MASTER_PORT)
  # shellcheck disable=SC2034 # by fill
  NPROC=$nproc NNODES=$nnodes NODE_RANK=$node_rank
  fill ${program_options[@]+"${program_options[@]}"}
  program_options=(${filled[@]+"${filled[@]}"})
fi
log_dir=${log_dir:-npu_logs/$(date +%Y%m%d-%H%M%S)}

program=("$python" -u "$script")
if [ -n "$module" ]; then
  export PYTHONPATH=$here/$module_root${PYTHONPATH:+:$PYTHONPATH}
  variables+=(PYTHONPATH)
  program=("$python" -u -m "$module")
fi
start=("$python" -m "$launcher")
torchrun=$(dirname "$python")/torchrun
if [ "$launcher" = torch.distributed.launch ]; then
  start+=(--use_env)
elif [ -x "$torchrun" ]; then
  start=("$torchrun")
fi
start+=(--nnodes="$nnodes" --node_rank="$node_rank" --nproc_per_node="$nproc")
start+=(--master_addr="${master_addr:-127.0.0.1}" --master_port="$master_port" --no_python)
if [ "$ranks_by" = program ]; then
  start=(env RANK=0 LOCAL_RANK=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1)
  rank_names=program
fi
options=${#program_options[@]}
set -- ${program_options[@]+"${program_options[@]}"} "$@"

if [ "$dry_run" = 1 ]; then
  for name in "${variables[@]}"; do printf 'export %s=%q\n' "$name" "${!name}"; done
  printf '%q ' "${start[@]}"
  printf '%q ' "${program[@]}" "$@"
  printf '\n# logs: %s\n' "$log_dir/rank_<rank>.log"
  exit 0
fi

if [ "$bind" = 1 ] && [ "$(uname -m)" != aarch64 ]; then
  say "--bind-cores does nothing on $(uname -m)"
  bind=0
elif [ "$bind" = 1 ] && [ "$ranks_by" = program ]; then
  say "--bind-cores does nothing for a program that starts its own ranks"
  bind=0
fi

# ---------------------------------------------------------------------------------------------------------------
# Run, and end everything that was started

mkdir -p -- "$log_dir" || refuse "the log folder $log_dir cannot be made"
log_dir=$(CDPATH='' cd -- "$log_dir" && pwd) || exit 2
rm -f "$log_dir"/rank_*.log
state=$(mktemp -d) || refuse "no temporary folder"

# What the launcher has left behind, should it have been killed.
# shellcheck disable=SC2329 # at exit
end_ranks() {
  local file shell child
  for file in "$state"/rank_*.pids; do
    if [ -f "$file" ]; then
      read -r shell child <"$file"
      kill -s KILL -- "-$shell" "$shell" "-$child" 2>/dev/null
    fi
  done
  rm -rf "$state"
}
trap end_ranks EXIT

# shellcheck disable=SC2329 # by the traps below
on_signal() {
  if [ -n "$signal" ]; then # asked twice: without waiting for the program's own end
    kill -s KILL -- "-$job" 2>/dev/null
  else
    signal=$1
    kill -s "$1" "$job" 2>/dev/null
  fi
}

if [ -n "$fault" ]; then say "$fault"; fi
say "$nproc rank(s) on this machine, $nnodes machine(s); logs: $log_dir"
case $ranks_by in
program) say "$entry starts them itself, as many as its options say" ;;
unknown | unseen) if [ "$nproc" -gt 1 ]; then say "nothing is known of $entry: it has to read RANK and LOCAL_RANK"; fi ;;
esac
set -m # the launcher gets a group of its own, and with it signals from nobody but us
"${start[@]}" bash "$self" __rank "$state" "$log_dir" "$bind" "$rank_names" ${#program[@]} "$options" "${program[@]}" "$@" </dev/null &
job=$!
set +m
trap 'on_signal INT' INT
trap 'on_signal TERM' TERM
trap 'on_signal HUP' HUP
while :; do
  wait "$job" 2>/dev/null
  code=$?
  kill -0 "$job" 2>/dev/null || break
done

if [ -n "$signal" ]; then
  say "ended by SIG$signal"
  exit $((128 + $(kill -l "$signal")))
fi
if [ -f "$state/failed" ]; then
  read -r failed code <"$state/failed"
  say "rank $failed ended with code $code; its log: $log_dir/rank_$failed.log"
  explain=(npumigrate explain --run "$log_dir" ${ASCEND_PROCESS_LOG_PATH:+"$ASCEND_PROCESS_LOG_PATH"})
  if command -v npumigrate >/dev/null; then "${explain[@]}" >&2; else say "its cause: ${explain[*]}"; fi
fi
exit "$code"
