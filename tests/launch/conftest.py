"""Starts launchers as platforms do; and what Kubernetes takes, by a schema from the API's own models."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import signal
import subprocess
from functools import partial
from pathlib import Path
from typing import Any, Callable

import pytest
import yaml

from migrator.cli.main import run

FOLDER = Path(__file__).parent
RANK_NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
QUANTITY = {
    "anyOf": [{"type": "integer"}, {"type": "string", "pattern": r"^\d+(\.\d+)?(m|[kMGTPE]|[KMGTPE]i)?$"}]
}
PLAIN = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "bool": {"type": "boolean"},
    "float": {"type": "number"},
    "object": {},
    "datetime": {"type": "string"},
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project folder with a program; its path has spaces."""
    folder = tmp_path / "my project"
    folder.mkdir()
    shutil.copy(FOLDER / "program.py", folder / "my train.py")
    return folder


def started(command: list[str], folder: Path, env: dict[str, str]) -> subprocess.Popen[str]:
    """A process with these variables and no others of CANN's and of ranks, in a session of its own."""
    names = {name for name in os.environ if not name.startswith(("ASCEND_", "HCCL_"))} - {*RANK_NAMES}
    clean = {name: os.environ[name] for name in names}
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**clean, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def said(out: str) -> list[dict[str, Any]]:
    """What each rank of program.py was given, by its number."""
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return sorted(lines, key=lambda line: int(line["RANK"]))


@pytest.fixture
def launch(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """``npumigrate launch``: exit code, output, standard error."""

    def command(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(["launch", *map(str, arguments)])
        return (code, *capsys.readouterr())

    return command


@pytest.fixture
def k8s(launch: Callable[..., tuple[int, str, str]]) -> Callable[..., tuple[int, str, str]]:
    """``npumigrate launch k8s``."""
    return partial(launch, "k8s")


@pytest.fixture(scope="session")
def problems() -> Callable[[str], list[str]]:
    """What a cluster's API server would refuse in a text with manifests, jobs of both kinds."""
    jsonschema = pytest.importorskip("jsonschema")
    schemas = job_schemas()

    def check(text: str) -> list[str]:
        found = []
        for document in yaml.safe_load_all(text):
            schema = schemas[document["apiVersion"], document["kind"]]
            validator = jsonschema.Draft202012Validator({**schemas["definitions"], **schema})
            found += [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]
        return found

    return check


def job_schemas() -> dict[Any, Any]:
    """A JSON schema for each kind: Volcano's is in a file here, the others are the models'."""
    models = pytest.importorskip("kubeflow.training.models")  # with those of Kubernetes
    definitions: dict[str, Any] = {}
    for root in ("KubeflowOrgV1PyTorchJob", "V1PodTemplateSpec", "V1ObjectMeta"):
        _define(root, models, definitions)
    # The package wants a runPolicy; the operator's own definition and examples do without.
    job = definitions["KubeflowOrgV1PyTorchJobSpec"]
    job["required"] = [name for name in job["required"] if name != "runPolicy"]
    volcano = yaml.safe_load((FOLDER / "volcano_job.yaml").read_text(encoding="utf-8"))
    definitions |= volcano.pop("$defs")
    return {
        "definitions": {"$defs": definitions},
        ("kubeflow.org/v1", "PyTorchJob"): {"$ref": "#/$defs/KubeflowOrgV1PyTorchJob"},
        ("batch.volcano.sh/v1alpha1", "Job"): volcano,
    }


def _define(name: str, models: Any, definitions: dict[str, Any]) -> None:
    if name in definitions:
        return
    model = getattr(models, name, None)
    if model is None:  # the metrics of elastic jobs have no class of their own
        definitions[name] = {}
        return
    properties: dict[str, Any] = {}
    definitions[name] = {"type": "object", "properties": properties, "additionalProperties": False}
    for attribute, kind in model.openapi_types.items():
        schema = _schema(kind, models, definitions)
        if name == "V1ResourceRequirements" and attribute in ("limits", "requests"):
            schema = {"type": "object", "additionalProperties": QUANTITY}
        properties[model.attribute_map[attribute]] = schema
    needed = re.findall(r"Invalid value for `(\w+)`, must not be `None`", inspect.getsource(model))
    definitions[name]["required"] = [model.attribute_map[attribute] for attribute in needed]


def _schema(kind: str, models: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    match = re.fullmatch(r"(?:list\[(.+)\]|dict[(\[]str, (.+)[)\]])", kind)
    if match and match.group(1):
        return {"type": "array", "items": _schema(match.group(1), models, definitions)}
    if match:
        return {"type": "object", "additionalProperties": _schema(match.group(2), models, definitions)}
    if kind in PLAIN:
        return PLAIN[kind]
    _define(kind, models, definitions)
    return {"$ref": f"#/$defs/{kind}"}
