"""What a program saves that torch.load does not read by default since torch 2.6."""

from __future__ import annotations

import pytest

from migrator.project.saved_objects import Saved, saved_objects

OPTIONS = "options of argparse, by its name"


def saved(text: str) -> set[Saved]:
    return {*saved_objects(text)}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "torch.save({'a': x, 'args': args}, p)",
            {
                Saved(
                    OPTIONS,
                    "args",
                    (
                        "a",
                        "args",
                    ),
                )
            },
        ),
        ("torch.save(dict(opt=self.opt), p)", {Saved(OPTIONS, "opt", ("opt",))}),
        (
            "def f(m):\n    to_save = {'model': m.state_dict()}\n    to_save['args'] = args\n"
            "    save_on_master(to_save, p)",
            {
                Saved(
                    OPTIONS,
                    "args",
                    (
                        "args",
                        "model",
                    ),
                )
            },
        ),
        (
            "o = parser.parse_args()\ndef f():\n    torch.save({'o': o}, p)",
            {Saved("options of argparse", "o", ("o",))},
        ),
        (
            "best = np.mean(scores)\ntorch.save({'best': best}, p)",
            {Saved("a value of NumPy", "best", ("best",))},
        ),
        (
            "state = {'at': 1, 'np': np.random.get_state()}\ntorch.save(state, p)",
            {
                Saved(
                    "a value of NumPy",
                    "np",
                    (
                        "at",
                        "np",
                    ),
                )
            },
        ),
        (
            "torch.save({'rng': {'py': random.getstate(), 'np': numpy.random.get_state()}}, p)",
            {Saved("a value of NumPy", "rng", ("rng",))},
        ),
        ("torch.save({'rng': {'py': random.getstate(), 'torch': torch.get_rng_state()}}, p)", set()),
        ("utils.save_on_master({'args': args}, p)", {Saved(OPTIONS, "args", ("args",))}),
        ("self.base.save_checkpoint({'args': args}, p)", {Saved(OPTIONS, "args", ("args",))}),
        ("trainer.save_checkpoint('last.ckpt')\nengine.save_checkpoint(model, 'last')", set()),
        ("torch.save(model, p)", {Saved("a module, by its name")}),
        ("torch.save([model, criterion, optimizer], p)", {Saved("a module, by its name")}),
        ("torch.save([x, y], p)", set()),
        ("torch.save(self.net, p)", {Saved("a module, by its name")}),
        (
            "torch.save({'optimizer': optimizer}, p)",
            {Saved("an optimizer, by its name", "optimizer", ("optimizer",))},
        ),
        ("net = Net().cuda()\ntorch.save(net, p)", {Saved("a module, by its name")}),
        ("torch.save({'opt': self.model_opt}, p)", {Saved(OPTIONS, "opt", ("opt",))}),
        ("torch.save({'args': model_args}, p)", set()),
        ("model = publishable(path)\ntorch.save(model, p)", set()),
        ("torch.save(model.state_dict(), p)", set()),
        ("best_model = copy.deepcopy(model.state_dict())\ntorch.save(best_model, p)", set()),
        ("torch.save({'args': vars(args), 'mean': float(np.mean(x)), 'm': args.model}, p)", set()),
        ("args = vars(parser.parse_args())\ntorch.save({'args': args}, p)", set()),
        ("args = {'lr': 1}\ntorch.save({'args': args}, p)", set()),
        ("json.dump({'args': args}, p)", set()),
        ("save_checkpoint(model, p)", set()),
        ("torch.save({'args': args}", set()),
    ],
)
def test_what_is_found(text: str, found: set[Saved]) -> None:
    assert saved(text) == found
