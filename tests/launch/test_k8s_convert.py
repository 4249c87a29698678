"""Manifests for GPUs become manifests for NPUs: what changes, what stays, what is said, what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from migrator.launch.k8s.cluster import ManifestError, cluster
from migrator.launch.k8s.convert import convert
from migrator.launch.k8s.yaml_text import Draft, changed_text

GOLDEN = Path(__file__).parent / "manifests"


def one_pod(container: str, pod: str = "", job: str = "") -> str:
    """A PyTorchJob with one pod; lines of its container, of the pod and of the job's spec."""

    def indented(text: str, by: int) -> str:
        return "".join(" " * by + line + "\n" for line in text.splitlines())

    return (
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata:\n  name: j\nspec:\n"
        + indented(job, 2)
        + "  pytorchReplicaSpecs:\n    Master:\n      replicas: 1\n      template:\n        spec:\n"
        + indented(pod, 10)
        + "          containers:\n          - name: pytorch\n            image: i\n"
        + indented(container, 12)
    )


GPU = "resources: {limits: {nvidia.com/gpu: 8}}\n"
VOLCANO = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\n"


def converted(text: str, **wishes: str) -> tuple[Any, str]:
    """The converted document as data, and all notes as one text; a second conversion changes nothing."""
    image = wishes.pop("image", "")
    target = cluster(**wishes)
    found = convert(text, "m.yaml", target, image)
    assert convert(found.text, "m.yaml", target, image).text == found.text
    return yaml.safe_load(found.text), "\n".join(found.notes)


def pod_of(job: Any) -> dict[str, Any]:
    return job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]


def container_of(job: Any) -> dict[str, Any]:
    return pod_of(job)["containers"][0]


@pytest.mark.parametrize("kind", ["pytorchjob", "volcanojob"])
def test_golden(k8s, problems, kind, tmp_path):
    code, out, err = k8s("--from", GOLDEN / f"gpu_{kind}.yaml")
    assert code == 0
    assert out == (GOLDEN / f"npu_{kind}.yaml").read_text()
    jobs = [document for document in yaml.safe_load_all(out) if document["kind"] != "ConfigMap"]
    assert problems(yaml.safe_dump_all(jobs)) == []
    assert "written anew" not in err
    # Once more: nothing changes, and it is written in place.
    file = tmp_path / "m.yaml"
    file.write_text(out)
    assert k8s("--from", file, "-o", file)[:2] == (0, "")
    assert file.read_text() == out


def test_what_is_said_has_its_line(k8s):
    file = GOLDEN / "gpu_pytorchjob.yaml"
    _, _, err = k8s("--from", file)
    lines = file.read_text().splitlines()
    said = {}
    for note in err.splitlines():
        name, number, text = note.split(":", 2)
        assert name == str(file)
        said.setdefault(lines[int(number) - 1].strip().lstrip("- "), []).append(text.strip())
    assert said["runtimeClassName: nvidia"] == ["left out: the runtime class nvidia"]
    assert said["nvidia.com/gpu: 4  # all of them"] == ["nvidia.com/gpu became huawei.com/Ascend910"]
    assert said["name: NCCL_BUFFSIZE"][0].startswith("left unchanged: NCCL_BUFFSIZE, which is HCCL_BUFFSIZE")
    assert said["name: NCCL_FOO"] == ["left unchanged: NCCL_FOO (unknown)"]
    assert said["rdma/hca: 1"][0].startswith("left unchanged: rdma/hca")
    assert said["image: nvcr.io/nvidia/pytorch:23.10-py3"][0].startswith("left unchanged: the image nvcr.io")
    assert said['{key: nvidia.com/gpu.count, operator: Gt, values: ["3"]}'] == [
        "left unchanged: nvidia.com/gpu.count"
    ]
    assert said["run.sh: |"] == ["left unchanged: NCCL_DEBUG=INFO"]
    assert any("world size 8" in text for text in said['apiVersion: "kubeflow.org/v1"'])


def test_comments_and_layout_stay(k8s):
    text = (GOLDEN / "gpu_pytorchjob.yaml").read_text()
    _, out, _ = k8s("--from", GOLDEN / "gpu_pytorchjob.yaml")
    kept = set(out.splitlines())
    gone = [line.strip() for line in text.splitlines() if line not in kept]
    about = re.compile(r"nvidia|gpu|cuda|nccl|INFO|value: all|Exists|NoSchedule", re.IGNORECASE)
    assert [line for line in gone if not about.search(line)] == []
    comments = [line.partition("#")[2] for line in text.splitlines() if "#" in line]
    assert [comment for comment in comments if comment not in out] == [" tainted"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_newlines_and_a_missing_last_one_stay(newline):
    text = one_pod(GPU).rstrip("\n").replace("\n", newline)
    found = convert(text, "m.yaml", cluster())
    assert found.text.replace("\r\n", "").count("\n") == (found.text.count("\n") if newline == "\n" else 0)
    assert not found.text.endswith("\n")
    assert "anew" not in "".join(found.notes)


def test_json_stays_json(problems):
    (_, document) = yaml.safe_load_all((GOLDEN / "gpu_pytorchjob.yaml").read_text())
    for indent in (None, 2, 4):
        text = json.dumps(document, indent=indent)
        found = convert(text, "m.json", cluster())
        assert json.loads(found.text) == yaml.safe_load(found.text)
        assert "nvidia.com/gpu: 4" not in found.text
        assert problems(found.text) == []
        assert (found.text.count("\n") > 10) == (indent is not None)
        if indent:
            assert found.text == json.dumps(json.loads(found.text), indent=indent)
        assert convert(found.text, "m.json", cluster()).text == found.text


def test_anchors_stay_where_they_can():
    text = (
        one_pod(GPU).replace("template:", "template: &pod")
        + "    Worker:\n      replicas: 3\n      template: *pod\n"
    )
    found = convert(text, "m.yaml", cluster())
    assert "template: *pod" in found.text
    roles = yaml.safe_load(found.text)["spec"]["pytorchReplicaSpecs"]
    assert roles["Master"]["template"] == roles["Worker"]["template"]
    assert len(roles["Master"]["template"]["spec"]["containers"][0]["volumeMounts"]) == 3
    assert "world size 32" in "".join(found.notes)
    assert "anew" not in "".join(found.notes)


def test_the_driver_of_the_gpus_covers_nothing_once_it_is_left_out() -> None:
    mount = "volumeMounts: [{name: nv, mountPath: /usr/local}]\n"
    volume = "volumes: [{name: nv, hostPath: {path: /usr/local/nvidia}}]\n"
    job, _ = converted(one_pod(GPU + mount, volume))
    assert [one["mountPath"] for one in container_of(job)["volumeMounts"]] == [
        "/usr/local/Ascend/driver",
        *("/etc/localtime", "/dev/shm"),
    ]


def test_merged_mappings_stay():
    text = one_pod(GPU + "env: [{name: NCCL_DEBUG, value: INFO}]\n", "runtimeClassName: nvidia\n")
    text = text.replace("spec:\n          ", "spec: &pod\n          ")
    text += "    Worker:\n      replicas: 1\n      template:\n        spec:\n"
    text += "          <<: *pod\n          hostNetwork: true\n"
    found = convert(text, "m.yaml", cluster())
    roles = yaml.safe_load(found.text)["spec"]["pytorchReplicaSpecs"]
    assert roles["Worker"]["template"]["spec"] == {**roles["Master"]["template"]["spec"], "hostNetwork": True}
    assert "nvidia" not in found.text
    assert "<<: *pod" in found.text
    assert convert(found.text, "m.yaml", cluster()).text == found.text


def test_what_is_written_anew_ends_with_its_last_alias() -> None:
    job = one_pod(GPU).replace("- name: pytorch", "- &a\n            name: pytorch")
    before, after = "kind: ConfigMap\n---\n", "# after\n---\nkind: Secret # stays\n"
    found = convert(f"{before}{job}          - *a\n{after}", "m.yaml", cluster())
    assert (found.text.startswith(before), found.text.endswith(after)) == (True, True)
    one, two = pod_of(list(yaml.safe_load_all(found.text))[1])["containers"]
    assert one == two
    assert one["resources"]["limits"] == {"huawei.com/Ascend910": 8}


def test_a_key_that_is_a_number() -> None:
    text = one_pod(GPU, pod="affinity:\n  1:\n  - key: nvidia.com/gpu.count")
    notes = converted(text)[1].splitlines()
    assert any(
        line.startswith(f"m.yaml:{text[: text.index('gpu.count')].count(chr(10)) + 1}:") for line in notes
    )


def test_a_document_that_cannot_be_changed_in_place_is_written_anew():
    text = "# mine\n" + one_pod("env: null # none\n" + GPU) + "---\na: b # kept\n"
    found = convert(text, "m.yaml", cluster())
    assert "m.yaml:2: this document loses its comments" in found.notes
    assert found.text.startswith("# mine\napiVersion")
    assert found.text.endswith("---\na: b # kept\n")
    assert "# none" not in found.text


def test_keys_without_a_value_get_one_in_their_place() -> None:
    text = one_pod(GPU + "command: [torchrun, t.py]\n", job="nprocPerNode:")
    text = text.replace("image: i", "image: # none yet").replace("template:", "template:\n        metadata:")
    job, notes = converted(text, image="ascend:1")
    assert job["spec"]["nprocPerNode"] == "8"
    assert "added: nprocPerNode 8" in notes
    template = job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    assert template["metadata"] == {"labels": {"ring-controller.atlas": "ascend-910b"}}
    assert container_of(job)["image"] == "ascend:1"
    assert "anew" not in notes
    assert "loses its comments" not in notes
    assert "image: ascend:1 # none yet\n" in convert(text, "m.yaml", cluster(), "ascend:1").text


def test_a_document_whose_only_entry_goes_is_empty() -> None:
    draft = Draft({"q": ["a"]})
    draft.delete(("q",))
    assert yaml.safe_load(changed_text("q: [a]\n# behind\n", [draft])[0]) == {}


@pytest.mark.parametrize(
    ("resources", "result"),
    [
        ("{limits: {nvidia.com/gpu: 8}}", 8),
        ("{requests: {nvidia.com/gpu: 8}}", 8),
        ("{limits: {nvidia.com/gpu: '8'}, requests: {cpu: 2}}", "8"),
        ("{limits: {nvidia.com/mig-3g.20gb: 2}}", 2),
        ("{limits: {alpha.kubernetes.io/nvidia-gpu: 1}}", 1),
        ("{limits: {volcano.sh/gpu-number: 1, nvidia.com/gpu: 3}}", 4),
    ],
)
def test_resources(problems, resources, result):
    job, _ = converted(one_pod(f"resources: {resources}"))
    found = container_of(job)["resources"]
    assert str(found["limits"]["huawei.com/Ascend910"]) == str(found["requests"]["huawei.com/Ascend910"])
    assert found["limits"]["huawei.com/Ascend910"] in (result, int(result))
    assert "nvidia" not in str(found)
    assert problems(yaml.safe_dump(job)) == []


@pytest.mark.parametrize(
    ("wishes", "resource"),
    [
        ({"hardware": "A1"}, "huawei.com/Ascend910"),
        ({"hardware": "950DT"}, "huawei.com/npu"),
        ({"platform": "cce", "hardware": "A3"}, "huawei.com/ascend-1980"),
        ({"resource": "example.com/chip"}, "example.com/chip"),
    ],
)
def test_clusters(wishes, resource):
    job, _ = converted(one_pod(GPU), **wishes)
    assert container_of(job)["resources"]["limits"] == {resource: 8}
    mounted = {one["mountPath"] for one in container_of(job)["volumeMounts"]}
    assert {"/usr/local/Ascend/driver", "/dev/shm"} <= mounted
    assert ("/usr/local/dcmi" in mounted) == ("platform" in wishes)
    assert ("nodeSelector" in pod_of(job)) == ("platform" not in wishes)
    assert [one["name"] for one in pod_of(job)["volumes"]] == [
        one["name"] for one in container_of(job)["volumeMounts"]
    ]


def test_mounts_that_are_there_are_used():
    container = GPU + (
        "volumeMounts:\n- {name: mem, mountPath: /dev/shm/}\n- {name: dshm, mountPath: /cache}\n"
        "- {name: nv, mountPath: /usr/local/nvidia/lib64}\n"
        "- {name: cudas, mountPath: /data}\n"
    )
    pod = (
        "volumes:\n- name: mem\n  emptyDir: {medium: Memory}\n- name: dshm\n  emptyDir: {}\n"
        "- name: host\n  hostPath: {path: /usr/local/Ascend/driver/}\n"
        "- name: nv\n  hostPath: {path: /usr/local/nvidia/lib64}\n"
        "- name: cudas\n  hostPath: {path: /data/cuda}\n"
    )
    job, notes = converted(one_pod(container, pod))
    mounts = {one["mountPath"]: one["name"] for one in container_of(job)["volumeMounts"]}
    there = {"/dev/shm/": "mem", "/cache": "dshm", "/data": "cudas"}
    assert mounts == {**there, "/usr/local/Ascend/driver": "host", "/etc/localtime": "localtime"}
    assert [one["name"] for one in pod_of(job)["volumes"]] == ["mem", "dshm", "host", "cudas", "localtime"]
    assert "left out: the volume of the node's /usr/local/nvidia/lib64" in notes
    assert "left unchanged: /data/cuda" in notes


def test_scheduling():
    pod = (
        "nodeSelector:\n  gpu-type: a100\n  zone: b\n"
        "tolerations:\n- {key: nvidia.com/gpu, operator: Exists}\n"
        "runtimeClassName: nvidia\nschedulerName: volcano\n"
    )
    job, _ = converted(one_pod(GPU, pod), accelerator_type="module-910b-8")
    spec = pod_of(job)
    npus = {"accelerator": "huawei-Ascend910", "accelerator-type": "module-910b-8"}
    assert spec["nodeSelector"] == {"zone": "b", **npus}
    assert "tolerations" not in spec
    assert "runtimeClassName" not in spec
    assert "ASCEND_VISIBLE_DEVICES" in [one["name"] for one in container_of(job)["env"]]


@pytest.mark.parametrize("env", ["env:", "env: []", "env: null", ""])
def test_an_empty_environment(env):
    job, _ = converted(one_pod(f"{env}\n{GPU}"))
    assert container_of(job)["env"][0]["name"] == "HCCL_CONNECT_TIMEOUT"


@pytest.mark.parametrize(
    ("variable", "name", "note"),
    [
        ("{name: CUDA_VISIBLE_DEVICES, value: '-1'}", "CUDA_VISIBLE_DEVICES", "left unchanged"),
        ("{name: CUDA_VISIBLE_DEVICES, value: GPU-8f}", "CUDA_VISIBLE_DEVICES", "left unchanged"),
        (
            "{name: PYTORCH_CUDA_ALLOC_CONF, value: 'backend:cudaMallocAsync'}",
            "PYTORCH_CUDA_ALLOC_CONF",
            "left",
        ),
        ("{name: TORCH_NCCL_BLOCKING_WAIT, value: '1'}", "TORCH_HCCL_BLOCKING_WAIT", "became"),
        ("{name: GLOO_SOCKET_IFNAME, value: eth0}", "GLOO_SOCKET_IFNAME", ""),
        ("{name: CUBLAS_WORKSPACE_CONFIG, value: ':4096:8'}", None, "left out"),
        ("{name: MY_VARIABLE, value: x}", "MY_VARIABLE", ""),
    ],
)
def test_variables(variable, name, note):
    job, notes = converted(one_pod(f"env:\n- {variable}\n{GPU}"))
    names = [one["name"] for one in container_of(job)["env"]]
    assert (names[0] == name) if name else (len(names) == 3)
    assert note in notes


def test_a_variable_that_is_set_in_both_forms():
    both = "env:\n- {name: NCCL_SOCKET_IFNAME, value: a}\n- {name: HCCL_SOCKET_IFNAME, value: b}\n"
    job, notes = converted(one_pod(both + GPU))
    assert [one["value"] for one in container_of(job)["env"] if "SOCKET" in one["name"]] == ["b"]
    assert "left out: NCCL_SOCKET_IFNAME (HCCL_SOCKET_IFNAME is set as well)" in notes


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torchrun t.py --dist_backend=nccl", "torchrun t.py --dist_backend=hccl"),
        ("torchrun t.py --backend 'nccl'", "torchrun t.py --backend 'hccl'"),
        ("python t.py --device cuda:0 --dev cuda", "python t.py --device npu:0 --dev cuda"),
        ("python t.py --backend gloo --out nccl", None),
        ("python t.py --data /data/cuda --name nccl", None),
        ("python t.py --device-count 8 --no-cuda", None),
        ("python t.py --backend nccl.py", None),
        ("nvidia-smi; python t.py", "npu-smi info; python t.py"),
        ("nvidia-smi -L; python t.py", None),
        ("NCCL_SOCKET_IFNAME=e python t.py", "HCCL_SOCKET_IFNAME=e python t.py"),
        ("NCCL_BUFFSIZE=1 python t.py", None),
        ("torchrun --nproc_per_node auto t.py", "torchrun --nproc_per_node 8 t.py"),
        ("torchrun --nproc-per-node=gpu t.py", "torchrun --nproc-per-node=8 t.py"),
        ("horovodrun -np 8 python t.py", "bash run_distributed_npu.sh --entry t.py --nproc 8"),
        ("horovodrun -np 8 -H a:4,b:4 python t.py", None),
        ("cd /x && mpirun -np 8 python t.py", None),
    ],
)
@pytest.mark.parametrize("style", ["- {}\n", "- |\n  {}\n", "- >-\n  {}\n"])
def test_commands(before, after, style):
    text = one_pod("command: [bash, -c]\nargs:\n" + style.format(before) + GPU)
    job, notes = converted(text)
    assert container_of(job)["args"][0].rstrip("\n") == (after or before)
    left = [word for word in ("cuda", "nccl", "nvidia", "NCCL", "gpu") if word in (after or before)]
    assert ("left unchanged" in notes.replace("the image", "").replace("left unchanged:  i;", "")) == bool(
        left
    ) or ("run" in before)
    assert "anew" not in notes


def test_a_command_in_words():
    command = "command: [torchrun, t.py, --backend, nccl, --device, 'cuda:1', --x, nccl]\n"
    job, notes = converted(one_pod(command + GPU))
    assert container_of(job)["command"] == "torchrun t.py --backend hccl --device npu:1 --x nccl".split()
    assert job["spec"]["nprocPerNode"] == "8"
    assert "left unchanged: nccl" in notes


def test_a_backend_for_each_device_in_a_list_is_left_and_reported():
    command = "command: [torchrun, t.py, --backend, 'cpu:gloo,cuda:nccl', --device, 'cuda,cpu']\n"
    job, notes = converted(one_pod(command + GPU))
    assert (
        container_of(job)["command"] == "torchrun t.py --backend cpu:gloo,cuda:nccl --device npu,cpu".split()
    )
    assert "left unchanged: cuda:nccl" in notes


@pytest.mark.parametrize(
    ("job", "command", "expected", "note"),
    [
        ("nprocPerNode: auto", "python t.py", "8", "nprocPerNode: auto became 8"),
        ("nprocPerNode: gpu", "torchrun t.py", "8", "nprocPerNode: gpu became 8"),
        ("nprocPerNode: '4'", "torchrun t.py", "4", "nprocPerNode is 4, and a pod has 8 NPUs"),
        ("nprocPerNode: '8'", "torchrun t.py", "8", ""),
        ("", "python t.py", None, ""),
        ("", "torchrun --nproc_per_node=4 t.py", None, "4 ranks are started in a pod with 8 NPUs"),
        (
            "elasticPolicy: {nProcPerNode: 4}",
            "torchrun t.py",
            None,
            "nProcPerNode is 4, and a pod has 8 NPUs",
        ),
    ],
)
def test_ranks_of_a_pod(job, command, expected, note):
    found, notes = converted(one_pod(f"command: [{', '.join(command.split())}]\n{GPU}", job=job))
    assert found["spec"].get("nprocPerNode") == expected
    assert note in notes


def test_an_image():
    job, notes = converted(one_pod(GPU + "env: [{name: A, value: nccl}]\n"), image="ascend:1")
    assert container_of(job)["image"] == "ascend:1"
    assert "m.yaml:13: the image i became ascend:1" in notes
    assert "left unchanged: nccl" in notes


def test_a_job_without_gpus_stays():
    text = one_pod("command: [python, t.py]")
    found = convert(text, "m.yaml", cluster())
    assert found.text == text
    assert "no container of this job requests GPUs" in "".join(found.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\nb: 2\n", "m.yaml:2: not YAML: "),
        ("a: {{ .Values.x }}\n", "m.yaml:1: not YAML"),
        ("a: &x [*x]\n", "m.yaml:1: this document contains itself"),
        ("a: !Ref x\n", "m.yaml:1: not YAML: could not determine a constructor"),
        ("kind: Service\n", "m.yaml: neither a PyTorchJob nor a Volcano Job"),
        ("", "m.yaml: neither"),
        (
            "kind: Deployment\nspec:\n  a:\n    nvidia.com/gpu: 1\n",
            "m.yaml:4: this Deployment requests GPUs: only",
        ),
        (one_pod(GPU).replace("org/v1", "org/v1beta2"), "m.yaml:1: kubeflow.org/v1beta2 is not"),
        (one_pod(GPU).replace("Master", "Chief"), "m.yaml:7: Chief is neither Master nor Worker"),
        (one_pod(GPU).replace("replicas: 1", "replicas: 2"), "m.yaml:8: a PyTorchJob has one Master, not 2"),
        (
            one_pod(GPU).replace("replicas: 1", "replicas: $N"),
            "m.yaml:8: replicas: $N is a template variable",
        ),
        (one_pod(GPU.replace("8", "$N")), "m.yaml:14: nvidia.com/gpu: $N is a template variable"),
        (one_pod(GPU.replace("8", "1.5")), "m.yaml:14: nvidia.com/gpu: 1.5 is not a number"),
        (
            one_pod("resources:\n  limits:\n    nvidia.com/gpu: 2\n  requests:\n    nvidia.com/gpu: 1\n"),
            "m.yaml:14: limits and requests of devices must be equal: limits 2 and requests 1",
        ),
        (
            one_pod(GPU.replace("8", "2, huawei.com/Ascend910: 1")),
            "m.yaml:14: one container requests nvidia.com/gpu and huawei.com/Ascend910",
        ),
        (one_pod("volumeMounts: [{name: []}]\nenv: 1\n" + GPU), "m.yaml:15: env is not a list"),
        (one_pod("env: {A: B}\n" + GPU), "m.yaml:14: env is not a list"),
        (one_pod("env: [A]\n" + GPU), "m.yaml:14: env[0] is not a mapping"),
        (one_pod("image: again\n" + GPU), "m.yaml:14: duplicate key image"),
        (one_pod(GPU, "volumes: none"), "volumes is not a list"),
        (f"{VOLCANO}spec:\n  tasks: 3\n", "m.yaml:4: tasks is not a list"),
        ("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec: 1\n", "m.yaml:3: spec is not a mapping"),
    ],
)
def test_refused(text, message):
    with pytest.raises(ManifestError) as error:
        convert(text, "m.yaml", cluster())
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_refused_file_leaves_the_output_alone(k8s, tmp_path):
    (tmp_path / "m.yaml").write_text("kind: Service\n")
    out = tmp_path / "out.yaml"
    out.write_text("old")
    code, _, err = k8s("--from", tmp_path / "m.yaml", "-o", out)
    assert code == 2
    assert err == f"npumigrate: {tmp_path}/m.yaml: neither a PyTorchJob nor a Volcano Job\n"
    assert out.read_text() == "old"


# Texts in every style, and changes of them: what the text then means is what the data becomes.
_scalars = st.sampled_from(
    ["a", "b c", "1", "yes", "x: y", "#", "", "it's", 'say "x"', 1, True, None, "two\nlines\n"]
)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("pqrst"), inner, max_size=3),
    max_leaves=12,
)
_documents = st.dictionaries(st.sampled_from("pqrst"), _values, min_size=1, max_size=4)


def _places(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    yield path
    for key, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from _places(inner, (*path, key))


@settings(max_examples=150, deadline=None)
@given(_documents, st.data(), st.booleans() | st.none(), st.integers(2, 4))
def test_a_change_of_text_is_a_change_of_data(document, data, flow, indent):
    comments = "# before\n" + yaml.safe_dump(document, default_flow_style=flow, indent=indent) + "# behind\n"
    places = list(_places(document, ()))
    path = data.draw(st.sampled_from(places))
    there: Any = document
    for step in path:
        there = there[step]
    draft, expected = Draft(document), deepcopy(document)
    now = holder = expected
    for step in path:
        holder, now = now, now[step]
    options = ["put"] * isinstance(there, dict) + ["append"] * isinstance(there, list)
    if path:
        options += ["delete"] + ["set"] * (not options) + ["rename"] * isinstance(path[-1], str)
    change = data.draw(st.sampled_from(options))
    if change == "put":
        now["new"] = {"k": [1, {"l": "m"}]}
        draft.put(path, "new", now["new"], data.draw(st.booleans()))
    elif change == "append":
        now.append({"k": 1, "l": [2]})
        draft.append(path, now[-1])
    elif change == "set":
        holder[path[-1]] = "other"
        draft.set(path, "other")
    elif change == "rename":
        holder["renamed"] = holder.pop(path[-1])
        draft.rename(path, "renamed")
    else:
        del holder[path[-1]]
        draft.delete(path)
    text, anew = changed_text(f"{comments}---\nz: 1 # z\n", [draft, Draft({"z": 1})])
    first, second = yaml.safe_load_all(text)
    assert first == expected == draft.result()
    assert second == {"z": 1}
    assert text.startswith("# before\n")
    assert text.endswith("z: 1 # z\n")
    if not anew:
        assert "# behind\n" in text


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(["gpu_pytorchjob.yaml", "gpu_volcanojob.yaml"]), st.data())
def test_a_value_of_another_kind_is_refused_or_stays(file, data):
    """Whatever stands in one place: the manifest is converted once and for all, or refused in one line."""
    documents = list(yaml.safe_load_all((GOLDEN / file).read_text()))
    path = data.draw(st.sampled_from([place for place in _places(documents, ()) if place]))
    holder: Any = documents
    for step in path[:-1]:
        holder = holder[step]
    others = [None, True, -1, 1.5, "", "nvidia.com/gpu", [], {}, [1], {2: 3}]
    holder[path[-1]] = data.draw(st.sampled_from(others))
    problem, text = "", ""
    try:
        text = convert(yaml.safe_dump_all(documents), "m.yaml", cluster()).text
    except ManifestError as error:
        problem = str(error)
    assert bool(problem) == problem.startswith("m.yaml")
    assert "\n" not in problem
    assert not text or convert(text, "m.yaml", cluster()).text == text
