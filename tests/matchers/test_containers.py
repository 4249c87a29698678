"""Manifests and containers in a project: what changes, and what is said of the rest."""

from __future__ import annotations

from pathlib import Path

import yaml

from migrator.project.project import Project
from tests.checking import check_text, migrate_text
from tests.matchers.migrating import engine

MANIFEST = Path(__file__).parents[1] / "launch" / "manifests" / "gpu_pytorchjob.yaml"
COMPOSE = """\
services:
  one:
    image: a
    gpus: 2
  two:
    image: b
    runtime: nvidia
    environment: {CUDA_VISIBLE_DEVICES: "0"}
"""


def test_all_services_of_a_file_change() -> None:
    rules = engine("2.6", select=("NPU947", "NPU410"))
    result = migrate_text(rules, "docker-compose.yml", COMPOSE.replace("\n", "\r\n"), Project())
    assert result.text is not None
    assert "\n" not in result.text.replace("\r\n", "")
    data = yaml.safe_load(result.text)["services"]
    assert data["one"]["devices"][:2] == ["/dev/davinci0:/dev/davinci0", "/dev/davinci1:/dev/davinci1"]
    assert set(data["two"]) == {"image", "environment", "devices", "volumes"}
    assert data["two"]["environment"] == {"ASCEND_RT_VISIBLE_DEVICES": "0"}
    assert migrate_text(rules, "docker-compose.yml", result.text, Project()).text is None


def test_the_arguments_of_a_development_container() -> None:
    arguments = '    "--ipc=host",\n    "--runtime=nvidia",\n    "--gpus=device=1",  // one\n'
    text = f'{{\n  "runArgs": [\n{arguments}  ],\n}}\n'
    result = check_text(engine("2.6"), ".devcontainer/devcontainer.json", text, Project())
    assert [(item.code, item.line, item.api) for item in result.findings] == [
        ("NPU947", 4, "--runtime=nvidia")
    ]
    assert "--device=/dev/davinci0 --device=/dev/davinci_manager" in result.findings[0].advice


def test_a_job_is_reported_once_with_the_command_that_converts_it() -> None:
    result = check_text(engine("2.6", select=("NPU946",)), "k8s/job.yaml", MANIFEST.read_text(), Project())
    (found,) = result.findings
    assert "launch k8s --from k8s/job.yaml --hw HW" in found.advice
    assert found.fix is None


def test_a_job_is_converted_where_the_hardware_is_named() -> None:
    rules = engine("2.6", hardware="A3")
    result = migrate_text(rules, "k8s/job.yaml", MANIFEST.read_text(), Project())
    assert result.text is not None
    assert "nvidia.com/gpu: " not in result.text
    assert "huawei.com/Ascend910: " in result.text
    assert "# BERT on two nodes" in result.text
    assert migrate_text(rules, "k8s/job.yaml", result.text, Project()).text is None
    (found,) = [item for item in result.findings if item.code == "NPU946"]
    assert "For another cluster: npumigrate launch k8s" in found.advice


def test_a_job_that_is_not_understood_is_reported_with_the_reason() -> None:
    text = MANIFEST.read_text().replace("kubeflow.org/v1", "kubeflow.org/v2")
    result = check_text(engine("2.6", select=("NPU946",), hardware="A3"), "a.yaml", text, Project())
    assert all(item.fix is None for item in result.findings)
    assert "kubeflow.org/v2 is not supported" in result.findings[0].advice


def test_of_other_manifests_each_place_is_reported() -> None:
    text = """\
apiVersion: apps/v1
kind: Deployment
spec:
  template:
    spec:
      runtimeClassName: nvidia
      nodeSelector: {nvidia.com/gpu.product: A100}
      tolerations: [{key: nvidia.com/gpu, operator: Exists}]
      containers:
      - resources: {limits: {nvidia.com/gpu: 1}}
---
apiVersion: v1
kind: Service
metadata: {name: nvidia-gpu}
"""
    result = check_text(engine("2.6", select=("NPU946",)), "a.yaml", text, Project())
    assert [item.line for item in result.findings] == [6, 7, 8, 10]
    assert "huawei.com/Ascend910" in result.findings[0].advice
