"""MPI lines become launcher lines."""

from __future__ import annotations

import json
import os
import subprocess
from functools import partial

import pytest


@pytest.fixture
def mpi(launch):
    return partial(launch, "mpi")


def test_two_hosts(mpi, tmp_path):
    file = tmp_path / "table.json"
    options = "-n 8 -H a:4,b:4 -x NCCL_DEBUG=INFO -x NCCL_SOCKET_IFNAME=eth0 -x NCCL_IB_TC=106 -mca pml ob1"
    line = f"mpirun {options} python train.py --lr 0.1 'a b'"
    code, out, err = mpi("--rank-table", file, line)
    assert code == 0
    launch = (
        "HCCL_SOCKET_IFNAME=eth0 bash run_distributed_npu.sh --entry train.py --nproc 4 --nnodes 2 "
        "--node-rank {} --master-addr a --master-port 29500 -- --lr 0.1 'a b'"
    )
    assert out == f"# on a\n{launch.format(0)}\n# on b\n{launch.format(1)}\n"
    assert "left out: -mca pml ob1" in err
    assert "left out: NCCL_DEBUG (HCCL logs through CANN" in err
    assert "NCCL_SOCKET_IFNAME became HCCL_SOCKET_IFNAME" in err
    assert "left out: NCCL_IB_TC (HCCL_RDMA_TC does not take 106: HCCL takes multiples of 4 up to 252)" in err
    assert "assumed: port 29500 of a is free" in err
    servers = json.loads(file.read_text())["server_list"]
    assert [(s["server_id"], len(s["device"])) for s in servers] == [("a", 4), ("b", 4)]


def test_the_line_as_words(mpi):
    code, out, _ = mpi("--", "mpirun", "-n", "2", "python", "t.py", "--name", "a b")
    assert (code, out) == (0, "bash run_distributed_npu.sh --entry t.py --nproc 2 -- --name 'a b'\n")


def test_hosts_are_filled_one_after_the_other(mpi, tmp_path):
    (tmp_path / "hosts").write_text("a slots=4\nb slots=4\nc slots=4\n")
    _, out, err = mpi(f"mpirun -n 6 --hostfile '{tmp_path}/hosts' python t.py")
    assert [line.split()[5] for line in out.splitlines()[1::2]] == ["4", "2"]
    assert "different numbers of ranks" in err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("srun -n 2 python t.py", "word 1: 'srun' is not one of mpirun"),
        ("mpirun --fancy python t.py", "word 2: unknown option --fancy"),
        ("mpirun -n x python t.py", "word 2: -n x is not a number of processes"),
        ("mpirun -n 9 -H a:4,b:4 python t.py", "-n 9 exceeds the 8 slots of the hosts"),
        ("mpirun python t.py", "neither a number of processes (-n) nor hosts (-H) given"),
        ("mpirun -n 2 python -m train", "word 5: python -m: only scripts can be launched"),
        ("mpirun -n 2 ./a.out", "word 4: './a.out' is not a Python script"),
        ("mpirun -n 2", "no program follows the options"),
        ("mpirun -n", "word 2: -n needs a value"),
        ("mpirun -n 1 python a.py : -n 1 python b.py", "word 6: several programs in one line"),
        ("mpirun -H a:b python t.py", "--hosts, part 1 ('a:b')"),
        ("mpirun -n 2 'python t.py", "cannot split the line into words"),
        ("mpirun --hostfile /nowhere python t.py", "/nowhere: no such file or folder"),
    ],
)
def test_what_is_not_understood_is_refused(mpi, line, message):
    code, out, err = mpi(line)
    assert (code, out) == (2, "")
    assert err.startswith(f"npumigrate: {message}")
    assert err.count("\n") == 1


RUN = "bash run_distributed_npu.sh --entry"


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("mpirun -np 4 python train.py", f"{RUN} train.py --nproc 4"),
        (
            "horovodrun -np 4 --autotune --min-np 2 --timeline-filename t.json --mpi-args='-gpu' python t.py",
            f"{RUN} t.py --nproc 4",
        ),
        ("mpiexec --n=2 python3.9 -u x/t.py -a", f"{RUN} x/t.py --nproc 2 -- -a"),
        ("horovodrun -np 4 -H localhost:4 python t.py", f"{RUN} t.py --nproc 4"),
        ("mpirun -n 3 -H a:4,b:4 python t.py", f"{RUN} t.py --nproc 3"),
        ("mpirun -npernode 2 -H a ./t.py", f"{RUN} ./t.py --nproc 2"),
        (
            "mpirun -n 1 -wdir '/a b' -x HOME -x A='1 2' python t.py",
            f"cd '/a b' && A='1 2' {RUN} t.py --nproc 1",
        ),
        ("mpirun -n 2 python t.py > log.txt 2>&1 &", f"{RUN} t.py --nproc 2 > log.txt 2>&1 &"),
        ("mpirun -n 2 python t.py -a 1 >log && echo done", f"{RUN} t.py --nproc 2 -- -a 1 >log && echo done"),
        ("mpirun -n 2 python t.py 2>&1 | tee log", f"{RUN} t.py --nproc 2 2>&1 | tee log"),
        ("mpirun -n 2 2>err python t.py", f"{RUN} t.py --nproc 2 2>err"),
        ("cd ~/x && mpirun -n 2 python t.py; ls", f"cd ~/x && {RUN} t.py --nproc 2; ls"),
        ("if mpirun -n 2 python t.py; then ls; fi", f"if {RUN} t.py --nproc 2; then ls; fi"),
        ("mpirun -n 2 python t.py --d ~/data $LR", f"{RUN} t.py --nproc 2 -- --d ~/data $LR"),
        ("mpirun -n 2 python t.py \"$LR\" '$LR'", f"{RUN} t.py --nproc 2 -- \"$LR\" '$LR'"),
        (
            'mpirun -n 2 -x A=${X:-"a,b"} python t.py -c ${X:-"a,b"} "${Y:-a b}/c d"',
            f'A=${{X:-"a,b"}} {RUN} t.py --nproc 2 -- -c ${{X:-"a,b"}} "${{Y:-a b}}/c d"',
        ),
        ("mpirun -n 2 python t.py --files data/*.txt", f"{RUN} t.py --nproc 2 -- --files data/*.txt"),
        ("mpirun -n 2 python t.py `date` $(date +'%F )')", f"{RUN} t.py --nproc 2 -- `date` $(date +'%F )')"),
        ("mpirun -np $GPUS python $DIR/t.py", f"{RUN} $DIR/t.py --nproc $GPUS"),
        ("nohup mpirun -n 2 -x A=1 python t.py &", f"A=1 nohup {RUN} t.py --nproc 2 &"),
        (
            "A=1 CUDA_VISIBLE_DEVICES=0,1 mpirun -n 2 python t.py",
            f"A=1 ASCEND_RT_VISIBLE_DEVICES=0,1 {RUN} t.py --nproc 2",
        ),
        ("mpirun -n 2 \\\n  python t.py  # both", f"{RUN} t.py --nproc 2  # both"),
        ("# start\nmpirun -n 2 python t.py", f"# start\n{RUN} t.py --nproc 2"),
        ("mpirun -n 2 python t.py --k {a,'b c'}", f"{RUN} t.py --nproc 2 -- --k {{a,'b c'}}"),
        ("mpirun -n 2 ${PYTHON:-python} t.py a;b", f"{RUN} t.py --nproc 2 -- a;b"),
    ],
)
def test_what_belongs_to_the_shell_stays_there(mpi, line, command):
    assert mpi(line)[:2] == (0, command + "\n")


WORDS = ("~/x", "$A", '"$A"', '${B:-"a,b"}', "'$A' \"it's\"", "*.txt", "a\\ b $(echo c d)", '"x${A}y z"')


@pytest.mark.parametrize("arguments", [*WORDS, "--k=$A/'b c'"])
def test_a_shell_gives_the_program_the_same_words(mpi, tmp_path, arguments):
    """The words behind -- are those that python would have got."""
    (tmp_path / "one.txt").touch()
    (tmp_path / "two.txt").touch()
    code, out, _ = mpi(f"mpirun -n 2 python t.py {arguments}")
    assert code == 0
    said = []
    for words in (arguments, out.rstrip().partition(" -- ")[2]):
        env = {"HOME": "/home/me", "A": "1 2", "PATH": os.environ["PATH"]}
        shell = ["bash", "-c", f"printf '%s\\0' {words}"]
        said.append(subprocess.run(shell, env=env, cwd=tmp_path, capture_output=True, check=True).stdout)
    assert said[0] == said[1]


def test_a_second_launcher_and_ranks_of_the_shell(mpi, tmp_path):
    _, out, err = mpi("mpirun -n 2 python a.py && mpirun -n 2 python b.py")
    assert out == f"{RUN} a.py --nproc 2 && mpirun -n 2 python b.py\n"
    assert "left unchanged: && mpirun -n 2 python b.py" in err
    for line, message in (
        ("mpirun -n $N -H a:2 python t.py", "-n $N: must be a number if hosts are given"),
        ("mpirun -N $N python t.py", "word 2: -N $N is not a number of processes"),
    ):
        code, _, err = mpi(line)
        assert (code, err) == (2, f"npumigrate: {message}\n")
    code, _, err = mpi("--rank-table", tmp_path / "t.json", "mpirun -n $N python t.py")
    assert code == 2
    assert "--rank-table needs a number of ranks" in err


def test_a_line_of_modelarts(mpi):
    options = """-np 16 -tune env_file -x "NAME=a b" -x V="$HOME/x y" -mca a b"""
    code, out, err = mpi(f"mpirun {options} python train.py --name 'c d'")
    start = "bash run_distributed_npu.sh --entry train.py --nproc 16 -- --name 'c d'"
    assert (code, out) == (0, f"NAME='a b' V=\"$HOME/x y\" {start}\n")
    assert "left out: -tune env_file" in err


def test_variables_of_the_environment(mpi):
    named = "-x CUDA_VISIBLE_DEVICES -x NCCL_DEBUG -x CUDA_HOME -x PATH"
    code, out, err = mpi(f"mpirun -n 2 {named} python t.py")
    start = "bash run_distributed_npu.sh --entry t.py --nproc 2\n"
    assert (code, out) == (0, start)  # "$CUDA_VISIBLE_DEVICES" is set by nobody any more
    assert "assumed: ASCEND_RT_VISIBLE_DEVICES is already set on each host" in err
    assert "left out: NCCL_DEBUG (" in err
    assert "left out: CUDA_HOME (" in err
    given = "-x CUDA_VISIBLE_DEVICES=0,1 -x NCCL_ALGO=Ring -x A=1,B=2 -x TORCH_NCCL_BLOCKING_WAIT=true"
    options = "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128,expandable_segments:True"
    _, out, err = mpi(f"mpirun -n 2 {given} -x {options} python t.py")
    assert out == f"ASCEND_RT_VISIBLE_DEVICES=0,1 A=1 B=2 {start}"
    assert "left out: NCCL_ALGO (The words differ" in err
    assert "left out: PYTORCH_CUDA_ALLOC_CONF (PYTORCH_NPU_ALLOC_CONF does not take max_split_size_mb" in err
    assert "left out: TORCH_NCCL_BLOCKING_WAIT (TORCH_HCCL_BLOCKING_WAIT does not take true" in err
    _, out, _ = mpi("CUDA_VISIBLE_DEVICES=1 mpirun -n 2 -x CUDA_VISIBLE_DEVICES python t.py")
    assert out == f"ASCEND_RT_VISIBLE_DEVICES=1 {start}"


def test_a_host_file_that_only_the_shell_knows(mpi):
    code, _, err = mpi("mpirun -np 16 --hostfile ${HOSTS} python train.py")
    assert code == 2
    assert "only the shell knows the file ${HOSTS}: name it" in err
