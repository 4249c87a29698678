#!/usr/bin/env bash
# Starts @NAME@, a program of MindSpore, on the NPUs of this machine, one process (rank) for each; on several machines too.
# Written by npumigrate launch mindspore.
set -u
entry=@ENTRY@
help="bash run_mindspore_npu.sh [options] [-- arguments of the program]
  --nproc N            ranks on this machine; default: one for each NPU
  --nnodes N           machines; on each of them the script is started, with
  --node-rank N        its number, 0 on the first, and
  --master-addr HOST   the first one; --master-port N (8118)
  --rank-table FILE    start by HCCL's rank table instead of msrun: the ranks of
  --server ADDRESS     this machine, as the table names it; needed where it has several
  --log-dir DIR        logs and working folders; default: npu_logs/<time>
  --dry-run            print what would be started
By the rank table each rank works in a folder of its own, DIR/rank_<n>, with its output in train.log, on a shared disk as on local
ones. Exit code: 0; that of the rank that failed first, the others being ended; 128 + n after signal n; 2 for wrong use."
say() { echo "run_mindspore_npu.sh: $*" >&2; }
refuse() { say "$*"; exit 2; }
number() { [[ $2 =~ ^[0-9]+$ ]] || refuse "$1 $2 is no whole number"; }

nproc='' nnodes=1 node_rank='' address='' port=8118 table='' server='' logs='' dry=0
while [ $# -gt 0 ]; do
  case $1 in
  --nproc | --nnodes | --node-rank | --master-addr | --master-port | --rank-table | --server | --log-dir)
    [ $# -gt 1 ] || refuse "$1 lacks its value" ;;
  esac
  case $1 in
  --nproc) number "$1" "$2"; nproc=$2; shift ;;
  --nnodes) number "$1" "$2"; nnodes=$2; shift ;;
  --node-rank) number "$1" "$2"; node_rank=$2; shift ;;
  --master-addr) address=$2; shift ;;
  --master-port) number "$1" "$2"; port=$2; shift ;;
  --rank-table) table=$2; shift ;;
  --server) server=$2; shift ;;
  --log-dir) logs=$2; shift ;;
  --dry-run) dry=1 ;;
  -h | --help) echo "$help"; exit 0 ;;
  --) shift; break ;;
  *) refuse "there is no option $1; the program's arguments stand behind -- (--help explains)" ;;
  esac
  shift
done
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 2
python=${PYTHON:-python}
[ -f "$here/$entry" ] || refuse "the script $entry is not in $here"
logs=${logs:-npu_logs/$(date +%Y%m%d_%H%M%S)}

if [ -z "$table" ]; then
  if [ -z "$nproc" ]; then
    nproc=$(find /dev -maxdepth 1 -name 'davinci[0-9]*' 2>/dev/null | wc -l)
    [ "$nproc" -gt 0 ] || refuse "no NPU was found on this machine: --nproc N says how many ranks to start"
  fi
  words=(msrun "--worker_num=$((nproc * nnodes))" "--local_worker_num=$nproc")
  if [ "$nnodes" -gt 1 ]; then
    [ -n "$address" ] && [ -n "$node_rank" ] || refuse "with --nnodes $nnodes, --node-rank and --master-addr are needed"
    [ "$node_rank" -lt "$nnodes" ] || refuse "--node-rank is $node_rank, and --nnodes $nnodes"
    words+=("--node_rank=$node_rank" "--master_addr=$address")
  fi
  words+=("--master_port=$port" "--log_dir=$logs" --join=True "$here/$entry" "$@")
  if [ $dry = 1 ]; then printf '%q ' "${words[@]}"; echo; exit 0; fi
  command -v msrun > /dev/null || refuse "there is no msrun (MindSpore 2.3 or newer): --rank-table FILE starts without it"
  mkdir -p "$logs" || exit 2
  exec "${words[@]}"
fi

[ -f "$table" ] || refuse "the rank table $table is not there (npumigrate launch rank-table makes one)"
table=$(cd "$(dirname "$table")" && pwd)/$(basename "$table")
# Of this machine: how many ranks there are, then a line with rank and device for each of its own.
ranks=$("$python" - "$table" "$server" <<'PYTHON'
import json, sys
file, wanted = sys.argv[1:]
try:
    servers = json.load(open(file, encoding="utf-8"))["server_list"]
    names = [server["server_id"] for server in servers]
    own = [server for server in servers if wanted in (server["server_id"], server.get("host_ip"))] if wanted else servers
    if len(own) != 1:
        sys.exit(f"run_mindspore_npu.sh: --server ADDRESS says which machine of {file} this is: {', '.join(names)}")
    print(sum(len(server["device"]) for server in servers))
    for device in own[0]["device"]:
        print(int(device["rank_id"]), int(device["device_id"]))
except (OSError, ValueError, KeyError, TypeError) as error:
    sys.exit(f"run_mindspore_npu.sh: {file} is no rank table: {error!r}")
PYTHON
) || exit 2
size=${ranks%%$'\n'*}
mapfile -t own <<< "${ranks#*$'\n'}"
if [ -n "$nproc" ] && [ "$nproc" != "${#own[@]}" ]; then
  refuse "--nproc is $nproc, and $table has ${#own[@]} ranks for this machine"
fi
if [ $dry = 1 ]; then
  for each in "${own[@]}"; do
    echo "RANK_ID=${each% *} DEVICE_ID=${each#* } RANK_SIZE=$size RANK_TABLE_FILE=$table $python -u $here/$entry $*"
  done
  exit 0
fi

processes=()
signal=''
finish() { # ends what runs, at first with a word
  local process number
  for number in TERM KILL; do
    for process in ${processes[@]+"${processes[@]}"}; do kill -$number -- "-$process" 2> /dev/null; done
    for _ in {1..100}; do
      for process in ${processes[@]+"${processes[@]}"}; do
        kill -0 -- "-$process" 2> /dev/null && { sleep 0.1; continue 2; }
      done
      return
    done
  done
}
for each in HUP:1 INT:2 TERM:15; do
  # shellcheck disable=SC2064
  trap "signal=${each#*:}" "${each%:*}"
done
trap finish EXIT
for each in "${own[@]}"; do
  folder=$logs/rank_${each% *}
  mkdir -p "$folder" || exit 2
  (
    cd "$folder" || exit 2
    export RANK_ID=${each% *} DEVICE_ID=${each#* } RANK_SIZE=$size RANK_TABLE_FILE=$table
    export PYTHONPATH=$here${PYTHONPATH:+:$PYTHONPATH}
    exec setsid "$python" -u "$here/$entry" "$@"
  ) > "$folder/train.log" 2>&1 < /dev/null &
  processes+=($!)
done
say "ranks ${own[0]% *} to ${own[${#own[@]} - 1]% *} of $size; logs: $logs/rank_<n>/train.log"
running=1
while [ $running = 1 ]; do
  [ -z "$signal" ] || exit $((128 + signal))
  running=0
  for place in "${!processes[@]}"; do
    if kill -0 "${processes[place]}" 2> /dev/null; then
      running=1
      continue
    fi
    wait "${processes[place]}"
    code=$?
    unset 'processes[place]'
    if [ $code != 0 ]; then
      say "rank ${own[place]% *} ended with code $code: $logs/rank_${own[place]% *}/train.log"
      exit $code
    fi
  done
  sleep 0.2
done
