"""What a program saves that torch.load does not read by default since torch 2.6."""

from __future__ import annotations

import pytest

from migrator.project.offers import SAVED, Offer
from migrator.project.saved_objects import saved_objects

OPTIONS = "options of argparse, judging by the name"
NUMPY = "a value of NumPy"
OPTIMIZER = "an optimizer, judging by the name"
MODULE = "a module, judging by the name"


@pytest.mark.parametrize(
    ("text", "what", "key", "keys"),
    [
        ("torch.save({'a': x, 'args': args}, p)", OPTIONS, "args", "a args"),
        ("torch.save(dict(opt=self.opt), p)", OPTIONS, "opt", "opt"),
        (
            "def f(m):\n    to_save = {'model': m.state_dict()}\n    to_save['args'] = args\n"
            "    save_on_master(to_save, p)",
            OPTIONS,
            "args",
            "args model",
        ),
        ("o = parser.parse_args()\ndef f():\n    torch.save({'o': o}, p)", "options of argparse", "o", "o"),
        ("best = np.mean(scores)\ntorch.save({'best': best}, p)", NUMPY, "best", "best"),
        ("state = {'at': 1, 'np': np.random.get_state()}\ntorch.save(state, p)", NUMPY, "np", "at np"),
        ("torch.save({'rng': {'p': r.getstate(), 'np': numpy.random.get_state()}}, p)", NUMPY, "rng", "rng"),
        ("torch.save({'rng': {'py': random.getstate(), 'torch': torch.get_rng_state()}}, p)", "", "", ""),
        ("utils.save_on_master({'args': args}, p)", OPTIONS, "args", "args"),
        ("self.base.save_checkpoint({'args': args}, p)", OPTIONS, "args", "args"),
        ("trainer.save_checkpoint('last.ckpt')\nengine.save_checkpoint(model, 'last')", "", "", ""),
        ("torch.save(model, p)", MODULE, "", ""),
        ("torch.save([model, criterion, optimizer], p)", MODULE, "", ""),
        ("torch.save([x, y], p)", "", "", ""),
        ("torch.save(self.net, p)", MODULE, "", ""),
        ("torch.save({'optimizer': optimizer}, p)", OPTIMIZER, "optimizer", "optimizer"),
        ("net = Net().cuda()\ntorch.save(net, p)", MODULE, "", ""),
        ("torch.save({'opt': self.model_opt}, p)", OPTIONS, "opt", "opt"),
        ("torch.save({'args': model_args}, p)", "", "", ""),
        ("model = publishable(path)\ntorch.save(model, p)", "", "", ""),
        ("torch.save(model.state_dict(), p)", "", "", ""),
        ("best_model = copy.deepcopy(model.state_dict())\ntorch.save(best_model, p)", "", "", ""),
        ("torch.save({'args': vars(args), 'mean': float(np.mean(x)), 'm': args.model}, p)", "", "", ""),
        ("args = vars(parser.parse_args())\ntorch.save({'args': args}, p)", "", "", ""),
        ("args = {'lr': 1}\ntorch.save({'args': args}, p)", "", "", ""),
        ("json.dump({'args': args}, p)", "", "", ""),
        ("save_checkpoint(model, p)", "", "", ""),
        ("torch.save({'args': args}", "", "", ""),
    ],
)
def test_what_is_found(text: str, what: str, key: str, keys: str) -> None:
    saved = Offer(SAVED, key, detail=(what, *keys.split()))
    assert saved_objects(text) == ({saved} if what else set())
