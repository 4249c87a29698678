"""Python imports this at its start, in each process below ``npumigrate record``."""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from os.path import dirname


class _Hook:
    """A finder that finds what the others find, and lets the recorder begin once torch is imported."""

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        """Find torch; None for everything else."""
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        found = (each.find_spec(name, path, target) for each in sys.meta_path)
        spec = next((each for each in found if each is not None), None)
        execute = getattr(spec and spec.loader, "exec_module", None)
        if execute is None:
            return spec

        def with_recorder(module):  # type: ignore[no-untyped-def]
            execute(module)
            try:
                from npumigrate_recorder.recording import begin

                begin()
            except Exception as error:
                print(f"npumigrate record: nothing is recorded: {error!r}", file=sys.stderr)

        spec.loader.exec_module = with_recorder
        return spec


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
    _chain()
finally:
    if "NPUMIGRATE_RECORD" in os.environ:
        sys.meta_path.insert(0, _Hook())  # type: ignore[arg-type]  # before the emulator's, which it asks
