"""MPI lines become launcher lines."""

from __future__ import annotations

import json

import pytest

from migrator.cli.main import run


@pytest.fixture
def mpi(capsys):
    def command(*arguments):
        capsys.readouterr()
        code = run(["launch", "mpi", *map(str, arguments)])
        return (code, *capsys.readouterr())

    return command


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


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("mpirun -np 4 python train.py", "bash run_distributed_npu.sh --entry train.py --nproc 4"),
        (
            "mpiexec --n=2 python3.9 -u x/t.py -a",
            "bash run_distributed_npu.sh --entry x/t.py --nproc 2 -- -a",
        ),
        ("horovodrun -np 4 -H localhost:4 python t.py", "bash run_distributed_npu.sh --entry t.py --nproc 4"),
        ("mpirun -n 3 -H a:4,b:4 python t.py", "bash run_distributed_npu.sh --entry t.py --nproc 3"),
        ("mpirun -npernode 2 -H a ./t.py", "bash run_distributed_npu.sh --entry ./t.py --nproc 2"),
        (
            "mpirun -n 1 -wdir '/a b' -x HOME -x A='1 2' python t.py",
            "cd '/a b' && A='1 2' bash run_distributed_npu.sh --entry t.py --nproc 1",
        ),
    ],
)
def test_one_host(mpi, line, command):
    assert mpi(line)[:2] == (0, command + "\n")


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
        ("srun -n 2 python t.py", "word 1: 'srun' is none of mpirun"),
        ("mpirun --fancy python t.py", "word 2: the option --fancy is not known"),
        ("mpirun -n x python t.py", "word 2: -n x is no number of processes"),
        ("mpirun -n 9 -H a:4,b:4 python t.py", "-n 9 is more than the 8 slots of the hosts"),
        ("mpirun python t.py", "neither a number of processes (-n) nor hosts (-H) are given"),
        ("mpirun -n 2 python -m train", "word 5: python -m: only a script can be launched"),
        ("mpirun -n 2 ./a.out", "word 4: './a.out' is no Python script"),
        ("mpirun -n 2", "no program stands behind the options"),
        ("mpirun -n", "word 2: -n lacks its value"),
        ("mpirun -n 1 python a.py : -n 1 python b.py", "word 6: several programs in one line"),
        ("mpirun -H a:b python t.py", "--hosts, part 1 ('a:b')"),
        ("mpirun -n 2 'python t.py", "the line cannot be split into words"),
        ("mpirun --hostfile /nowhere python t.py", "/nowhere cannot be read"),
    ],
)
def test_what_is_not_understood_is_refused(mpi, line, message):
    code, out, err = mpi(line)
    assert (code, out) == (2, "")
    assert err.startswith(f"npumigrate: {message}")
    assert err.count("\n") == 1
