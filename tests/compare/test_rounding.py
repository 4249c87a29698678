"""Rounding of gradients is no difference, and TF32 is told as one: in processes that nobody recorded."""

from __future__ import annotations

import math

import pytest

from migrator.compare.judging import Judge, Parting
from migrator.compare.matching import Both
from migrator.compare.reading import Call, Process, Step, Tensor


def tensor(error: float = 0.0, infinite: int = 0, device: str = "cpu") -> Tensor:
    """A tensor of norm 1, so far from another one."""
    return Tensor("8", "float32", device, True, -1, 1, 0, 1, 0, infinite, (1.0 + error, *[0.0] * 7))


def process(api: str, given: float, gradients: tuple[Tensor, ...]) -> Process:
    """The API, then a square root: with errors of what they are given; gradients from the last one on."""
    tensors = {1: tensor(given), 2: tensor(given), 3: tensor(given), **dict(enumerate(gradients, 10))}
    calls = [Call(api=api, given=[1], made=[2]), Call(api="sqrt", given=[2], made=[3], order=1)]
    grads = [(3 - place, 10 + place) for place in range(len(gradients))]
    return Process(0, tensors=tensors, steps=[Step(0, calls, grads)])


def parting(api: str, given: float, ours: tuple[Tensor, ...], theirs: tuple[Tensor, ...]) -> Parting | None:
    return Judge(Both(process(api, 0.0, ours), process(api, given, theirs))).first_parting()


@pytest.mark.parametrize(
    ("api", "given", "errors", "place"),
    [
        ("mul", 1e-7, (5e-4, 1e-2, 0.1), None),  # they grow from call to call
        ("mul", 1e-7, (1e-7, 1e-2, 0.1), "sqrt"),
        ("mul", 1e-7, (1e-7, 5e-4, 0.05), "mul"),
        ("clamp", 1e-7, (1e-7, 5e-4, 0.05), None),  # rounding decides which value has a gradient
        ("clamp", 0.0, (1e-7, 5e-4, 0.05), "clamp"),  # of the same values it does not
    ],
)
def test_gradients_with_errors_part_where_these_come_from(api, given, errors, place) -> None:
    found = parting(api, given, (tensor(),) * 3, tuple(map(tensor, errors)))
    assert (found and found.api) == place


def test_gradients_may_overflow_in_both_runs() -> None:
    """A GradScaler leaves out the step, whichever values overflow."""
    ours, theirs = (tensor(), tensor(infinite=3), tensor()), (tensor(), tensor(), tensor(infinite=5))
    assert parting("mul", 0.0, ours, theirs) is None
    found = parting("mul", 0.0, (tensor(),) * 3, theirs)
    assert found
    assert (found.api, found.distance) == ("mul", math.inf)


@pytest.mark.parametrize(
    ("device", "api", "allowed", "cause"),
    [
        ("cuda:0", "functional.conv2d", "cudnn.allow_tf32", "TF32 on the GPU"),
        ("cuda:0", "functional.linear", "cudnn.allow_tf32", "different kernel"),
        ("cuda:0", "functional.linear", "matmul.allow_tf32", "TF32 on the GPU"),
        (
            "cpu",
            "functional.conv2d",
            "cudnn.allow_tf32",
            "different kernel",
        ),  # torch's default, on a CPU as well
    ],
)
def test_tf32_is_of_gpus_and_of_what_it_computes(device, api, allowed, cause) -> None:
    sides = []
    for place, error in ((device, 0.0), ("npu:0", 5e-4)):
        tensors = {1: tensor(device=place), 2: tensor(error, device=place)}
        module = Call(
            "Net", "layer", "Layer", given=[1], made=[2], inside=[Call(api=api, given=[1], made=[2])]
        )
        sides.append(Process(0, {allowed: True}, tensors, steps=[Step(0, [module])]))
    found = Judge(Both(*sides)).first_parting()
    assert found
    assert found.causes[0]["name"] == cause
