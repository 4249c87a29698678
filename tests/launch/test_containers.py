"""Services of Docker Compose that are given GPUs."""

from __future__ import annotations

import pytest
import yaml

from migrator.language import MessageError
from migrator.launch.containers import numbers_of, run_options, services

COMPOSE = """\
# of the laboratory
services:
  database:
    image: postgres
  train:
    build: .
    runtime: nvidia   # all of them
    environment:
      - NVIDIA_VISIBLE_DEVICES=0,2
    volumes:
      - ./data:/data  # ours
    command: python train.py
  serve:
    image: serve
    deploy:
      resources:
        limits: {memory: 4g}
        reservations:
          devices:
            - driver: nvidia
              count: all
              capabilities: [gpu]
    ports: ["80:80"]
"""


def test_each_service_gets_the_npus_that_it_names() -> None:
    train, serve = services(COMPOSE)
    assert (train.name, train.line, train.every) == ("train", 7, False)
    assert train.text is not None
    data = yaml.safe_load(train.text)["services"]["train"]
    assert "runtime" not in data
    assert data["devices"][:2] == ["/dev/davinci0:/dev/davinci0", "/dev/davinci2:/dev/davinci2"]
    assert "/dev/davinci_manager:/dev/davinci_manager" in data["devices"]
    assert data["volumes"][0] == "./data:/data"
    assert "      - ./data:/data  # ours\n" in train.text
    assert (serve.name, serve.every) == ("serve", True)
    data = yaml.safe_load(str(serve.text))["services"]["serve"]
    assert data["deploy"] == {"resources": {"limits": {"memory": "4g"}}}
    assert data["devices"][0] == "/dev/davinci0:/dev/davinci0"


def test_other_devices_of_a_service_stay_and_are_not_counted() -> None:
    """An accelerator of another maker says nothing of which GPUs are asked for."""
    text = """\
services:
  train:
    image: a
    deploy:
      resources:
        reservations:
          devices:
            - {driver: nvidia, device_ids: ["1"], capabilities: [gpu]}
            - {driver: other, count: 4, capabilities: [tpu]}
            - {device_ids: [maker.com/device=x], capabilities: [[tpu]]}
            - {device_ids: ["3"], capabilities: [[gpu, utility]]}
"""
    (train,) = services(text)
    data = yaml.safe_load(str(train.text))["services"]["train"]
    npus = [device for device in data["devices"] if device[len("/dev/davinci")].isdecimal()]
    assert npus == [f"/dev/davinci{number}:/dev/davinci{number}" for number in (1, 3)]
    kept = data["deploy"]["resources"]["reservations"]["devices"]
    assert [item["capabilities"] for item in kept] == [["tpu"], [["tpu"]]]


@pytest.mark.parametrize(
    "text",
    [
        "x-gpu: &gpu\n  runtime: nvidia\nservices:\n  a:\n    <<: *gpu\n    image: a\n",
        "services:\n  a: &a {runtime: nvidia, volumes: {x: y}}\n",
        "services:\n  a:\n    gpus:\n      - device_ids: [GPU-1234]\n",
        "services:\n  a:\n    runtime: nvidia\n    volumes: &v [x:y]\n  b:\n    volumes: *v\n",
    ],
)
def test_what_is_not_understood_is_left_with_the_reason(text: str) -> None:
    (service,) = services(text)
    assert service.text is None
    assert service.reason


def test_what_has_no_gpus_is_no_service_in_question() -> None:
    assert not [*services("services:\n  a: {image: gpu, runtime: runc, deploy: {resources: {}}}\n")]
    reserved = "services: {a: {deploy: {resources: {reservations: {devices: DEVICES}}}}}\n"
    assert not [*services(reserved.replace("DEVICES", "{driver: nvidia}"))]  # no list: Docker refuses it
    assert not [*services(reserved.replace("DEVICES", "[gpu, {driver: other, capabilities: [gpu]}]"))]
    assert not [*services("train: {runtime: nvidia}\n")]
    assert not [*services("services: [\n")]


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [("all", None), (2, [0, 1]), ("device=1,3", [1, 3]), ('"device=0"', [0]), (["4"], [4])],
)
def test_the_numbers_that_are_asked_for(asked: object, numbers: object) -> None:
    assert numbers_of(asked) == numbers


def test_no_numbers() -> None:
    with pytest.raises(MessageError):
        numbers_of("device=GPU-1")
    with pytest.raises(MessageError):
        numbers_of(10**9)


def test_the_options_of_docker() -> None:
    assert run_options([1])[:2] == ["--device=/dev/davinci1", "--device=/dev/davinci_manager"]
