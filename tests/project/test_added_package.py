"""Where a package that is added lies, and how each file imports it."""

from __future__ import annotations

import pytest

from migrator.project.added_package import Place, places

LIBRARY = {
    "acme/__init__.py": "",
    "acme/nn/__init__.py": "from .loss import gap\n",
    "acme/nn/loss.py": "import torch\n",
    "acme/nn/deep/__init__.py": "",
    "acme/nn/deep/more.py": "from ..loss import gap\n",
    "acme/cli.py": "from acme.nn import gap\nif __name__ == '__main__':\n    gap()\n",
    "train.py": "import acme\nfrom acme.nn import loss\n",
}
SCRIPTS = {
    "tools/train.py": "import helper\n",
    "tools/helper.py": "import torch\n",
    "tools/parts/net.py": "import torch\n",
    "tools/other.py": "from parts.net import Net\n",
}
# A folder with an __init__.py that is used as a folder of scripts.
MIXED = {
    "models/__init__.py": "",
    "models/main.py": "import layers\nif __name__ == '__main__':\n    pass\n",
    "models/layers.py": "import torch\n",
}
SOURCE = {
    "src/acme/__init__.py": "",
    "src/acme/net.py": "import torch\n",
    "run.py": "from acme.net import Net\n",
}
# A package whose modules show what they do when they are started; one imports its siblings as scripts do.
SHOWN = {
    "acme/__init__.py": "from acme.net import Net\n",
    "acme/net.py": "import torch\n",
    "acme/deep.py": "import torch\nif __name__ == '__main__':\n    pass\n",
    "acme/tool.py": "import net\nif __name__ == '__main__':\n    pass\n",
    "tools/__init__.py": "",
    "tools/train.py": "import torch\nif __name__ == '__main__':\n    pass\n",
    "tools/show.py": "import acme\nif __name__ == '__main__':\n    pass\n",
}
# Settings: what an import, or some other program, reads.
SETTINGS = {
    "train.py": "import torch\nimport options\nfrom .more import wanted\n",
    "options.py": "DEVICE = 'cuda'\n",
    "more.py": "wanted = 'cuda'\n",
    "configs/run.py": "# from here on\ndist = dict(backend='nccl')\n",
    "configs/made.py": "import os\nDEVICE = 'cuda'\n",
}
# The project's folder itself is a package, whose name nobody knows.
NODES = {"__init__.py": "from .nodes import A\n", "nodes.py": "from .lib.net import Net\n", "lib/net.py": ""}


@pytest.mark.parametrize(
    ("files", "name", "folder", "statement"),
    [
        (LIBRARY, "train.py", "", "import ours"),
        (LIBRARY, "acme/nn/loss.py", "acme", "from acme import ours"),
        (LIBRARY, "acme/nn/deep/more.py", "acme", "from ... import ours"),
        (LIBRARY, "acme/nn/__init__.py", "acme", "from .. import ours"),
        (LIBRARY, "acme/cli.py", "acme", "from acme import ours"),
        (SCRIPTS, "tools/train.py", "tools", "import ours"),
        (SCRIPTS, "tools/helper.py", "tools", "import ours"),
        (SCRIPTS, "tools/parts/net.py", "tools/parts", "from parts import ours"),
        (MIXED, "models/main.py", "models", "import ours"),
        (MIXED, "models/layers.py", "models", "import ours"),
        (SOURCE, "src/acme/net.py", "src/acme", "from acme import ours"),
        (NODES, "nodes.py", "", "from . import ours"),
        (SHOWN, "acme/deep.py", "acme", "from acme import ours"),
        (SHOWN, "acme/tool.py", "acme", "import ours"),
        (SHOWN, "tools/train.py", "tools", "import ours"),
        (SHOWN, "tools/show.py", "tools", "import ours"),
        (SETTINGS, "options.py", "", "import ours"),
        (SETTINGS, "more.py", "", "import ours"),
        (SETTINGS, "configs/run.py", "configs", ""),
        (SETTINGS, "configs/made.py", "configs", "import ours"),
    ],
)
def test_place(files: dict[str, str], name: str, folder: str, statement: str) -> None:
    place = places(files, files.get)[name]
    assert (place.folder, place.statement("ours")) == (folder, statement)


def test_a_file_that_cannot_be_read_is_found_beside_itself() -> None:
    assert places(["a/b.ipynb"], lambda _: None) == {"a/b.ipynb": Place("a")}
