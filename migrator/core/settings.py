"""Which rules a file is checked with."""

from __future__ import annotations

from migrator.light import NamedTuple


class Settings(NamedTuple):
    """The options that change what the rules find.

    ``version`` is a torch version of ``api_db/versions.csv`` as ``2.6.0``. ``select`` and ``ignore`` are
    rule codes or their prefixes (``NPU1``), or ``ALL``. ``rule_files`` are a user's own rule packs.
    ``hardware`` is the product line that the project is for (``A2``), empty for none in particular. With
    ``transfer`` the only fix is the import of torch_npu's run-time patching; with ``keep_cuda`` fixes give
    a source that runs on CUDA, NPUs and the CPU. ``specify_device``: the variable DEVICE_ID chooses the NPU.
    ``content`` is a digest of the rule packs, where they may change while the program runs.
    """

    version: str
    select: tuple[str, ...] = ("ALL",)
    ignore: tuple[str, ...] = ()
    rule_files: tuple[str, ...] = ()
    hardware: str = ""
    transfer: bool = False
    keep_cuda: bool = False
    specify_device: bool = False
    content: str = ""
