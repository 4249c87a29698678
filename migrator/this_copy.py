"""This copy of npumigrate: its commit, and how an extra gets into the environment that it is installed in."""

from __future__ import annotations

import json
import shlex
import sys
from importlib import metadata
from pathlib import Path

from migrator import __version__

_ROOT = Path(__file__).resolve().parents[1]
_OURS = (_ROOT / "pyproject.toml").is_file()  # a checkout, maybe installed with -e


def version() -> str:
    """The version, and behind it the commit where it is known."""
    commit = _origin()[1]
    if _OURS and (_ROOT / ".git").exists():
        from migrator.files.patterns import commit_of  # few runs need it

        commit = commit_of(_ROOT)
    return f"{__version__} ({commit[:10]})" if commit else __version__


def install_command(extra: str) -> str:
    """The command that adds an extra, in the way in which this copy was installed."""
    url, _, installer = _origin()
    what = [f"npumigrate[{extra}] @ {url}" if url else f"npumigrate[{extra}]"]
    what = ["-e", f"{_ROOT}[{extra}]"] if _OURS else what
    if Path(sys.prefix, "uv-receipt.toml").is_file():
        words = ["uv", "tool", "install", *what]
    elif Path(sys.prefix, "pipx_metadata.json").is_file():
        words = ["pipx", "install", "--force", *what]
    elif installer == "uv":
        words = ["uv", "pip", "install", "--python", sys.executable, *what]
    else:
        words = [sys.executable, "-m", "pip", "install", *what]
    return shlex.join(words)


def _origin() -> tuple[str, str, str]:
    """Where pip, or uv, took it from (PEP 610), as which commit, and which of them; empty where unknown."""
    try:
        found = metadata.distribution("npumigrate")
        direct = json.loads(found.read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        return "", "", ""
    url, vcs = direct.get("url", ""), direct.get("vcs_info", {})
    if vcs:
        url = f"{vcs['vcs']}+{url}@{vcs.get('requested_revision') or vcs['commit_id']}"
    return url, vcs.get("commit_id", ""), (found.read_text("INSTALLER") or "").strip()
