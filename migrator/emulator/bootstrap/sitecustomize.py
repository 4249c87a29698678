"""Python imports this at its start, in each process below ``npumigrate emulate``."""

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from os.path import dirname

_behind: list[object] = []  # it stays as long as this one: what it has defined is in use


def _chain() -> None:
    """Run the sitecustomize that this one stands before."""
    here = dirname(__file__)
    behind = sys.path[sys.path.index(here) + 1 :] if here in sys.path else []  # one before it has called it
    spec = PathFinder.find_spec(__name__, behind)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        _behind.append(module)
        spec.loader.exec_module(module)


try:
    from npumigrate_emulator import hook

    hook.install()
finally:
    _chain()
