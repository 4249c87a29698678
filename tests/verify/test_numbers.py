"""Numbers that two runs print."""

from __future__ import annotations

import math

import pytest

from migrator.verify.numbers import compare, lines


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("batch 0/3 | Loss: 2.190674 | Acc: 0.000% (0/4)", ("0", "3", "2.190674", "0.000", "0", "4")),
        ("12%|█ | 3/25 [00:01<00:05, 3.2it/s, loss=0.312]", ("12", "3", "25", "0.312")),
        (
            "Epoch: [0][ 1/2]\tTime  1.23 ( 1.30)\tData  0.1 ( 0.1)\tLoss 6.9e+00 (7.0)",
            ("0", "1", "2", "6.9e+00", "7.0"),
        ),
        ("2026-11-21 14:17:52,942 beta 0.9 theta -.5", ("0.9", "-.5")),
        ("tensor([1., nan], device='npu:0')", ("1.", "nan")),
        ("val/acc: 0.25, loss 0.5 min 0.2", ("0.25", "0.5", "0.2")),
        ("resnet50 conv1x1", ()),
        ("saved to /tmp/x/ck_0.5.pt, runs/0.7/log.txt in 3.2 seconds", ()),
        ("Memory: 123.4 MB, speed 0.5 img/s, elapsed=5.25, train_runtime: 12.5", ()),
        ("train_samples_per_second: 3.4; took 2.5s; ETA 0.5; 1.5 ms/step", ()),
        ("torch 2.13.0 at 0x7fff12 from 127.0.0.1", ()),
        ("[W1121 14:17:52.172949168 NPUCachingAllocator.cpp:168] Warning: 0.5", ()),
        ("[rank0]:[W1121 14:17:52.1 x.cpp:168] Warning: 0.5", ()),
        ("/a/b.py:12: UserWarning: 0.5", ()),
    ],
)
def test_what_could_be_a_result(text, numbers):
    assert tuple(number for line in lines(text) for number in line.numbers) == numbers


@pytest.mark.parametrize(
    ("original", "migrated", "agrees"),
    [
        ("loss 1.0000", "loss 1.0009", True),
        ("loss 1.0000", "loss 1.0021", False),
        ("loss 0.0123", "loss 0.0124", True),  # the last place was rounded
        ("loss 0.1", "loss 0.2", False),  # too few places to say so
        ("loss nan", "loss nan", True),
        ("loss nan", "loss 1.5", False),
        ("step 3 loss 1.5", "step 4 loss 1.5", False),  # whole numbers are exact
        ("using CUDA: loss 1.5", "using NPU: loss 1.5", True),
        ("[1.5, 2.5]", "[1.5, 2.5, 3.5]", None),
        ("epoch 1", "epoch 1", None),
        ("took 1.5 s", "took 2.5 s", None),
    ],
)
def test_two_lines(original, migrated, agrees):
    comparison = compare(original, migrated, 1e-3)
    assert comparison.agrees is bool(agrees)
    assert bool(comparison.compared) is (agrees is not None)


def test_lines_of_ranks_come_in_any_order():
    comparison = compare("rank 0 loss 1.5\nrank 1 loss 2.5", "rank 1 loss 2.5\nrank 0 loss 1.5\n", 0)
    assert comparison.agrees
    assert comparison.numbers == 4
    assert comparison.largest == 0


def test_what_only_one_printed_is_told():
    comparison = compare("loss 1.5\nloss 2.5\nold 3.5", "loss 1.5\nnew 4.5", 0)
    assert comparison.agrees
    assert comparison.only_original == ("loss 2.5", "old 3.5")
    assert comparison.only_migrated == ("new 4.5",)


def test_the_largest_difference():
    assert compare("a 1.0\nb 2.0", "a 1.0\nb 2.5", 0).largest == pytest.approx(0.2)
    assert compare("a nan", "a 1.5", 0).largest == math.inf
