"""Manifests that are made from a description: options, or a job file."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from migrator.launch.fault_texts import fault_texts

GOLDEN = Path(__file__).parent / "manifests"
PYTORCH = ("--name", "bert", "--image", "swr.example.com/ascend:8.1", "--npus", "8", "--hw", "A2")


def pods(text: str) -> list[tuple[int, dict]]:
    """The replicas and the pod's spec of each role."""
    job = yaml.safe_load(text)
    if job["kind"] == "Job":
        return [(task["replicas"], task["template"]["spec"]) for task in job["spec"]["tasks"]]
    roles = job["spec"]["pytorchReplicaSpecs"]
    assert next(iter(roles)) == "Master"
    return [(role["replicas"], role["template"]["spec"]) for role in roles.values()]


def container(text: str) -> dict:
    return pods(text)[0][1]["containers"][0]


@pytest.mark.parametrize(
    ("file", "arguments"),
    [
        (
            "pytorchjob.yaml",
            "--workers 2 --cpu 64 --memory 512Gi --namespace team --volume pvc:data:/data:ro --env A=1 "
            "-- python train.py --lr 0.1",
        ),
        (
            "volcanojob.yaml",
            "--kind VolcanoJob --workers 3 --queue research --accelerator-type module-910b-8 "
            "--volume /mnt/code:/code --folder /code "
            "-- bash run_distributed_npu.sh --entry train.py -- --lr 0.1",
        ),
        ("cce.yaml", "--platform cce --kind VolcanoJob -- python -m pkg.train"),
    ],
)
def test_golden(k8s, problems, file, arguments):
    code, out, _ = k8s(*PYTORCH, *arguments.split(" "))
    assert code == 0
    assert out == (GOLDEN / file).read_text()
    assert problems(out) == []
    # What is made needs no conversion.
    assert (
        k8s("--from", GOLDEN / file, "--platform", "cce" if file == "cce.yaml" else "mindcluster")[1] == out
    )


@pytest.mark.parametrize("kind", ["PyTorchJob", "VolcanoJob"])
@pytest.mark.parametrize(
    ("workers", "npus", "hw"), [(1, 1, "A1"), (1, 8, "A2"), (2, 16, "A3"), (33, 8, "950DT")]
)
def test_the_ranks_are_those_of_the_npus(k8s, problems, kind, workers, npus, hw):
    code, out, err = k8s(
        *("--kind", kind, "--workers", workers, "--npus", npus, "--hw", hw, "--name", "j", "--image", "i"),
        *("--", "python", "-u", "t.py", "a b"),
    )
    assert code == 0
    assert problems(out) == []
    found = pods(out)
    assert [count for count, _ in found] == ([1, workers - 1] if workers > 1 else [1])
    resource = "huawei.com/npu" if hw == "950DT" else "huawei.com/Ascend910"
    for _, spec in found:
        resources = spec["containers"][0]["resources"]
        assert resources["limits"] == resources["requests"] == {resource: npus}
        line = spec["containers"][0]["command"][2].splitlines()[-1]
        assert f"--nproc_per_node={npus} " in line
        assert line.endswith(" t.py 'a b'")
        nodes = "--standalone" if workers == 1 else f"--nnodes={workers}"
        assert line.startswith(f"exec torchrun {nodes} ")
    assert f"world size {workers * npus}" in err
    job = yaml.safe_load(out)["spec"]
    if kind == "PyTorchJob":
        assert job["nprocPerNode"] == str(npus)
    else:
        assert job["minAvailable"] == workers
        assert job["plugins"]["pytorch"] == ["--master=master", "--worker=worker", "--port=23456"]


def test_the_devices_of_volcano_are_read_only_where_it_chooses_them(k8s, problems):
    arguments = (*PYTORCH, "--", "python", "t.py")
    assert "ASCEND_VISIBLE_DEVICES" not in k8s(*arguments)[1]
    out = k8s("--scheduler", "volcano", *arguments)[1]
    assert problems(out) == []
    assert pods(out)[0][1]["schedulerName"] == "volcano"
    (variable,) = (one for one in container(out)["env"] if one["name"] == "ASCEND_VISIBLE_DEVICES")
    assert variable["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.annotations['huawei.com/Ascend910']"
    assert "ASCEND_VISIBLE_DEVICES" not in k8s("--scheduler", "other", "--kind", "VolcanoJob", *arguments)[1]


def test_what_is_about_gpus_in_a_description_gets_its_npu_form(k8s):
    options = ("--env", "NCCL_SOCKET_IFNAME=eth0", "--env", "NCCL_DEBUG=INFO", "--env", "TASK_QUEUE_ENABLE=2")
    code, out, err = k8s(*PYTORCH, *options, "--", "python", "train.py", "--backend", "nccl")
    assert code == 0
    names = {one["name"]: one.get("value") for one in container(out)["env"]}
    assert names["HCCL_SOCKET_IFNAME"] == "eth0"
    assert names["TASK_QUEUE_ENABLE"] == "2"
    assert "NCCL_DEBUG" not in names
    assert "train.py --backend hccl" in container(out)["command"][2]
    assert "left out: NCCL_DEBUG (HCCL logs through CANN" in err


def test_a_command_of_its_own_stays(k8s):
    _, out, err = k8s(*PYTORCH, "--", "deepspeed", "train.py")
    assert container(out)["command"] == ["deepspeed", "train.py"]
    assert "assumed: deepspeed starts the 8 ranks of a pod itself" in err


def test_the_start_is_a_script_that_runs(k8s, tmp_path):
    """The lines around the command, with a stand-in for torchrun."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "torchrun").write_text('#!/bin/sh\nfor word; do echo "$word"; done\n')
    (programs / "torchrun").chmod(0o755)
    _, out, _ = k8s("--workers", "2", *PYTORCH, "--", "python", "train.py", "it's $HOME")
    bash, option, script = container(out)["command"]
    given = {"RANK": "1", "MASTER_ADDR": "m-0", "MASTER_PORT": "23456"}
    environment = {"PATH": f"{programs}:/usr/bin:/bin", **given}
    ran = subprocess.run(
        [shutil.which(bash), option, script], env=environment, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stderr) == (0, fault_texts()["set-env-missing"].line() + "\n")
    assert ran.stdout.splitlines() == [
        *("--nnodes=2", "--nproc_per_node=8", "--node_rank=1", "--master_addr=m-0", "--master_port=23456"),
        *("train.py", "it's $HOME"),
    ]


JOB = """\
# a job
kind = PyTorchJob
name=bert
worker_count=2
worker_gpu=8

worker_image=i:1
env=A=b=c
env=D=
volume=nfs:10.0.0.1:/exports:/data
command=python train.py --name 'a b'
"""


def test_a_job_file(k8s, problems, tmp_path):
    file = tmp_path / "job.txt"
    file.write_text(JOB)
    code, out, _ = k8s("--job", file, "--hw", "A3")
    assert code == 0
    assert problems(out) == []
    assert [count for count, _ in pods(out)] == [1, 1]
    found = container(out)
    assert found["image"] == "i:1"
    assert found["env"][:2] == [{"name": "A", "value": "b=c"}, {"name": "D", "value": ""}]
    assert found["command"][2].endswith("train.py --name 'a b'\n")
    # An option goes before the file's line.
    assert [count for count, _ in pods(k8s("--job", file, "--workers", "5")[1])] == [1, 4]
    file.write_text(JOB.replace("python train.py", "cd /x && python train.py"))
    assert container(k8s("--job", file)[1])["command"][:2] == ["bash", "-c"]


DLC = """\
name=bert
workspace_id=123
worker_count=2
worker_gpu=0
worker_cpu=0
worker_memory=64
worker_shared_memory=16Gi
worker_spec=ecs.gn6e-c12g1.24xlarge
worker_image=i:1
envs=A=1,B=a,b,C=x=y
data_sources=data1,data2
command=python train.py
"""


def test_a_parameter_file_for_dlc(k8s, problems, tmp_path):
    file = tmp_path / "job.txt"
    file.write_text(DLC)
    code, out, err = k8s("--job", file)
    assert (code, problems(out)) == (0, [])
    found = container(out)
    limits = found["resources"]["limits"]
    assert (limits["memory"], limits["huawei.com/Ascend910"], "cpu" in limits) == ("64Gi", 8, False)
    assert {one["name"]: one["value"] for one in found["env"][:3]} == {"A": "1", "B": "a,b", "C": "x=y"}
    assert f"{file}:6: worker_memory=64 is 64Gi, as DLC counts" in err
    lines = DLC.splitlines()
    for number in (2, 4, 5, 7, 8, 11):
        assert f"{file}:{number}: left out: {lines[number - 1]} (" in err
    assert container(k8s("--job", file, "--npus", "4")[1])["resources"]["limits"]["huawei.com/Ascend910"] == 4


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("worker_cout=2", "2: unknown key 'worker_cout'; did you mean 'worker_count'?"),
        ("frobnicate=2", "2: unknown key 'frobnicate'; known are kind, name,"),
        ("worker_count", "2: 'worker_count' is not key=value"),
        ("worker_count=two", "2: worker_count: 'two' is not a number from 1 to 4096"),
        ("worker_count=0", "2: worker_count: '0' is not a number"),
        ("worker_gpu=1e3", "2: worker_gpu: '1e3' is not a number"),
        ("name=Bert", "2: name: 'Bert' is not a valid name"),
        ("name=" + "x" * 51, "is not a valid name: use at most 50"),
        (
            "kind=PytorchJobs",
            "2: kind: 'PytorchJobs' is not one of PyTorchJob, VolcanoJob; did you mean PyTorchJob?",
        ),
        ("worker_memory=12GB", "2: worker_memory: '12GB' is not a quantity such as 256Gi"),
        ("volume=data:/data", "2: volume: 'data:/data' is not one of /on/the/node:/in/the/pod"),
        ("env=1A=2", "2: env: '1A=2' is not NAME=VALUE"),
        ("command=python 'x", "2: command: cannot be split into words"),
        ("kind=VolcanoJob\nkind=PyTorchJob", "3: kind is given twice (first in line 2)"),
        ("worker_npu=8\nworker_gpu=8", "3: worker_gpu is given twice"),
    ],
)
def test_a_wrong_line_of_a_job_file(k8s, tmp_path, line, message):
    file = tmp_path / "job.txt"
    file.write_text(f"# wrong\n{line}\n")
    code, out, err = k8s("--job", file)
    assert (code, out) == (2, "")
    assert err.startswith(f"npumigrate: {file}:")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "no job given"),
        ("--name j -- python t.py", "a job needs an image: --image"),
        ("--name j --image i", "a job needs a command: -- COMMAND"),
        ("--name j --image i --npus 3 --hw A1 -- python t.py", "a pod on A1 can have 1, 2, 4, 8 NPUs, not 3"),
        (
            "--name j --image i --hw B1 -- python t.py",
            "'B1' is not a product line of mindcluster: A1, A2, A3, 950DT",
        ),
        (
            "--name j --image i --hw A1 --platform cce -- python t.py",
            "'A1' is not a product line of cce: A2, A3",
        ),
        (
            "--name j --image i --platform x -- python t.py",
            "--platform: choose from mindcluster, cce, not 'x'",
        ),
        ("--name j --image i --accelerator-type module -- python t.py", "'module' is not available on A2"),
        ("--workers 0 --name j", "--workers: '0' is not a number"),
        ("--volume /a:/x --volume /b:/x/ --name j", "--volume: two volumes are mounted at /x"),
        ("--env A=1 --env A=2", "--env: duplicate variable A"),
        ("--name j --image i --queue q -- python t.py", "has a queue only with --scheduler volcano"),
        ("--name j --image i -- python -c pass", "python -c: only a script or a module"),
        (
            "--name j --image i -- bash run_distributed_npu.sh --nproc 4",
            "the job sets --nproc of run_distributed_npu.sh: leave it out",
        ),
        (
            "--resource NPU --name j",
            "--resource: 'NPU' is not a name of a resource such as huawei.com/Ascend910",
        ),
        ("--from m.yaml --image ~", "--image: '~' is not a name of an image"),
        ("--from m.yaml --workers 2", "--from and --workers cannot be used together"),
        ("--from m.yaml --job j", "--from and --job cannot be used together"),
        ("--from missing.yaml", "missing.yaml: no such file or folder"),
        ("--job missing.txt", "missing.txt: no such file or folder"),
    ],
)
def test_wrong_use(k8s, arguments, message):
    code, out, err = k8s(*arguments.split())
    assert (code, out) == (2, "")
    assert message in err
    assert err.splitlines()[-1].startswith("npumigrate: ")


def test_the_schema_finds_what_a_cluster_refuses(problems):
    text = (GOLDEN / "pytorchjob.yaml").read_text()
    assert problems(text) == []
    volcano = (GOLDEN / "volcanojob.yaml").read_text()
    for file, old, new in [
        (text, "restartPolicy:", "restartpolicy:"),
        (text, "nprocPerNode: '8'", "nprocPerNode: 8"),
        (text, "replicas: 1", "replicas: one"),
        (text, "- name: pytorch", "- nome: pytorch"),
        (text, "512Gi", "512GB"),
        (volcano, "PodEvicted", "PodLost"),
        (volcano, "minAvailable", "minimum"),
    ]:
        assert problems(file.replace(old, new)), old


def test_a_file_is_written_whole_or_not_at_all(k8s, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text("old")
    assert k8s(*PYTORCH, "-o", file, "--", "python", "t.py")[:2] == (0, "")
    assert yaml.safe_load(file.read_text())["kind"] == "PyTorchJob"
    code, _, err = k8s(*PYTORCH, "-o", tmp_path / "no" / "job.yaml", "--", "python", "t.py")
    assert code == 2
    assert "cannot write" in err.splitlines()[-1]


@pytest.mark.parametrize(
    ("command", "name"), [("python src/Train_One.py", "train-one"), ("bash start.sh", "npu-job")]
)
def test_a_job_is_named_after_its_script(k8s, command, name):
    code, out, err = k8s("--image", "i", "--", *command.split())
    assert code == 0
    assert f"  name: {name}\n" in out
    assert f"assumed: the job is called {name} (--name)" in err
