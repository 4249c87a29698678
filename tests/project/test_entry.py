"""Which script of a project the launcher starts."""

from __future__ import annotations

import pytest

from migrator.project.entry import candidate, ranked

GUARD = "if __name__ == '__main__':\n    main()\n"
TRAINS = "def main():\n    loss.backward()\n    optimizer.step()\n"
OPTIONS = "parser = argparse.ArgumentParser()\n"


def best(files: dict[str, str]) -> list[str]:
    found = [candidate(name, text) for name, text in files.items()]
    return [one.name for one in ranked(one for one in found if one)]


def test_the_script_that_trains_comes_first() -> None:
    files = {
        "main.py": OPTIONS + GUARD,
        "tools/train.py": TRAINS + GUARD,
        "train.py": TRAINS + OPTIONS + GUARD,
        "model.py": "class Model: ...\n",
        "train-all.py": GUARD,
    }
    assert best(files) == ["train.py", "tools/train.py", "main.py", "train-all.py"]


def test_a_script_without_a_main_block() -> None:
    assert best({"mnist.py": "for x, y in loader:\n    loss.backward()\n    optimizer.step()\n"}) == [
        "mnist.py"
    ]


def test_a_script_that_calls_its_trainer() -> None:
    assert best({"mnist.py": f"{TRAINS}trainer = Trainer()\ntrainer.fit()\n"}) == ["mnist.py"]
    assert best({"mnist.py": "model(x).sum().backward()\noptimizer.step()\n"}) == ["mnist.py"]
    assert best({"mnist.py": TRAINS.replace("main", "train_model") + "net = train_model(net)\n"}) == [
        "mnist.py"
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("setup.py", GUARD),
        ("evaluate.py", OPTIONS + GUARD),
        ("export_onnx.py", OPTIONS + GUARD),
        ("download_data.py", GUARD),
        ("pkg/loss_scaler.py", TRAINS + GUARD),  # tries itself out
        ("trainer_lib.py", "def fit(loss):\n    loss.backward()\n"),  # only defines
        (
            "wrapper.py",
            "torch.cuda.empty_cache()\nclass Wrapper:\n    def fit(loss):\n        loss.backward()\n",
        ),
        ("notes.txt", TRAINS + GUARD),
        ("tests/test_train.py", TRAINS + GUARD),
    ],
)
def test_what_is_no_training_script(name: str, text: str) -> None:
    assert best({name: text}) == []
