"""Acts when the program imports torch and its kin; costs nothing where it does not."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from io import TextIOWrapper
from types import ModuleType
from typing import Optional


class Hook:
    """A finder that finds what Python's own finds, and adds a step before and after the import."""

    def find_spec(
        self, name: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        """Find the module; None for all but a few names."""
        if name not in _STEPS:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        before, after = _STEPS[name]
        execute = spec.loader.exec_module

        def with_steps(module: ModuleType) -> None:
            before(spec)
            with _no_collections():
                execute(module)
            after()

        setattr(spec.loader, "exec_module", with_steps)  # noqa: B010 (a method of one object)
        return spec


class _WithoutNpu(PathFinder):
    """Finds all but torch_npu: a library that looks for it takes the devices for NPUs where CUDA is meant."""

    @classmethod
    def find_spec(
        cls, name: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        """Find the module as Python would without torch_npu."""
        return None if name == "torch_npu" else super().find_spec(name, path, target)


@contextmanager
def _no_collections() -> Iterator[None]:
    """Let nobody look for garbage among what an import makes: it stays, and is many objects.

    Looking through it again and again is a third of what the start takes, and as much at the end of Python.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()


def install() -> None:
    """Put the hook before Python's finders, and watch the project where that is asked for."""
    if "NPUMIGRATE_EMULATOR_STAND_IN" in os.environ:
        _STEPS.pop("torch_npu", None)
        sys.meta_path[:] = [_WithoutNpu if each is PathFinder else each for each in sys.meta_path]
    sys.meta_path.insert(0, Hook())
    if "NPUMIGRATE_EMULATOR_PLACES" in os.environ:
        from npumigrate_emulator import reached

        reached.install()
    if "NPUMIGRATE_EMULATOR_STAND_IN" in os.environ:
        from npumigrate_emulator import leaving

        leaving.install()
    if "NPUMIGRATE_EMULATOR_WATCHED" in os.environ:
        from npumigrate_emulator import failures, waiting

        failures.install()
        waiting.install()
    seed = os.environ.get("NPUMIGRATE_EMULATOR_SEED")
    if seed is not None:
        import random

        random.seed(int(seed))
        # Lines are compared with those of another run: those of two ranks must not be mixed.
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(line_buffering=True)


def _check_torch(spec: ModuleSpec) -> None:
    expected = os.environ.get("NPUMIGRATE_EMULATOR_TORCH", "")
    found = os.path.dirname(spec.origin or "")
    if expected and found and not os.path.samefile(expected, found):
        raise ImportError(
            f"npumigrate emulate: this program imports torch from {found}, but the emulated NPU was built "
            f"for {expected}; run npumigrate from the program's own environment"
        )


def _after_torch() -> None:
    from npumigrate_emulator import failures, report, steps

    report.begin()
    steps.begin()
    if "NPUMIGRATE_EMULATOR_WATCHED" in os.environ:
        failures.after_torch()
    if "NPUMIGRATE_EMULATOR_STAND_IN" in os.environ:
        from npumigrate_emulator import cuda_on_cpu

        cuda_on_cpu.apply(int(os.environ["NPUMIGRATE_EMULATOR_DEVICES"]))
    seed = os.environ.get("NPUMIGRATE_EMULATOR_SEED")
    if seed is not None:
        import torch

        torch.manual_seed(int(seed))


def _after_numpy() -> None:
    seed = os.environ.get("NPUMIGRATE_EMULATOR_SEED")
    if seed is not None:
        sys.modules["numpy"].random.seed(int(seed))


def _nothing(spec: ModuleSpec) -> None:
    pass


def _before_torch_npu(spec: ModuleSpec) -> None:
    # A launcher script may have set these for a real NPU.
    if os.environ.get("TASK_QUEUE_ENABLE") == "2" and os.environ.get("ASCEND_LAUNCH_BLOCKING") != "1":
        os.environ["NPUMIGRATE_EMULATOR_LATE"] = "1"
    os.environ["TASK_QUEUE_ENABLE"] = "0"
    folder = os.environ.get("NPUMIGRATE_EMULATOR", "")
    if folder:
        os.environ["ASCEND_HOME_PATH"] = os.path.join(folder, "cann")
        os.environ["ASCEND_OPP_PATH"] = os.path.join(folder, "cann", "opp")
        _load_libraries(os.path.join(folder, "lib"))


def _load_libraries(folder: str) -> None:
    """Load the emulated CANN where LD_LIBRARY_PATH has lost it: torch_npu finds it by name then.

    What is preloaded, such as a library that counts allocations, asks for the next function of that name.
    """
    import ctypes

    wanted = folder not in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    if wanted or "LD_PRELOAD" in os.environ:
        for name in sorted(os.listdir(folder)):
            if name != os.path.basename(os.environ["NPUMIGRATE_EMULATOR_COMPUTE"]):
                ctypes.CDLL(os.path.join(folder, name), ctypes.RTLD_GLOBAL)


def _after_torch_npu() -> None:
    from npumigrate_emulator import device, steps

    device.take_over()
    steps.count_skipped(sys.modules["torch_npu"].npu.amp.GradScaler)
    if os.environ.get("NPUMIGRATE_EMULATOR_RACES") == "1":
        from npumigrate_emulator import races

        races.begin()


def _before_torchvision(spec: ModuleSpec) -> None:
    from npumigrate_emulator import vision

    vision.define_operators(spec)


def _after_torchvision() -> None:
    from npumigrate_emulator import vision

    vision.run_on_npu()


_STEPS: dict[str, tuple[Callable[[ModuleSpec], None], Callable[[], None]]] = {
    "numpy": (_nothing, _after_numpy),
    "torch": (_check_torch, _after_torch),
    "torch_npu": (_before_torch_npu, _after_torch_npu),
    "torchvision": (_before_torchvision, _after_torchvision),
}
