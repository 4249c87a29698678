"""What one run of the engine is asked to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """The options that change what the rules find and fix.

    ``version`` is a torch version of ``api_db/versions.csv`` as ``2.6.0``.
    ``select`` and ``ignore`` are rule codes or their prefixes (``NPU1``), or
    ``ALL``. ``rule_files`` are a user's own rule packs. ``hardware`` is the product
    line that the project is for (``A2``), empty for none in particular.
    """

    version: str
    select: tuple[str, ...] = ("ALL",)
    ignore: tuple[str, ...] = ()
    safe_only: bool = False
    rule_files: tuple[str, ...] = ()
    transfer: bool = False
    hardware: str = ""
