"""The repositories of a list, one a line with comments behind ``#``, and their files, each in its own folder.

Nothing of them is built, imported or run to get them. What a job starts has limits of time and memory, and
does not outlive the job.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, count
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import IO, Literal, NamedTuple, Optional

from migrator.files.errors import SourceError, unreadable
from migrator.language import N_, UserError, _
from migrator.light import Frozen

Kind = Literal["folder", "archive", "package", "git"]
ARCHIVES = (".whl", ".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")

_SHOWN = 10  # wrong lines that are reported
# Not its name alone: a folder that is missing may be the name of anybody's package.
_PACKAGE = re.compile(r"pypi:([A-Za-z0-9][\w.-]*(?:==[\w.!+-]+)?)")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_URL = re.compile(r"(?:https?|ssh|git|file)://|[\w.-]+@[\w.-]+:")
_COMMIT = re.compile(r"[0-9a-f]{40}")


class Repository(Frozen):
    """``name`` is its own in the list; ``source`` a path, a URL or a package; ``revision`` git's."""

    name: str
    kind: Kind
    source: str
    revision: str = ""

    @property
    def fixed(self) -> bool:
        """Whether its name alone says what it holds: a release of a package, a commit."""
        return "==" in self.source if self.kind == "package" else bool(_COMMIT.fullmatch(self.revision))


def read_list(file: Path) -> list[Repository]:
    """The repositories of a list; paths in it are relative to its folder.

    Raises SourceError, with a line for each line that names none.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = unreadable(error) if isinstance(error, OSError) else _("not UTF-8")
        raise SourceError(f"{file}: {why}") from None
    found: list[Repository] = []
    wrong: list[str] = []
    names: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        entry = _COMMENT.sub("", line).strip()
        try:
            item = _repository(entry, file, number) if entry else None
        except SourceError as error:
            wrong.append(str(error))
            continue
        if item:
            own = re.sub(r"[^\w.-]", "_", item.name).lstrip(".-") or "repository"  # as a file may be called
            every = chain([own], (f"{own}-{again}" for again in count(2)))
            name = next(each for each in every if each.lower() not in names)
            names.add(name.lower())
            found.append(replace(item, name=name))
    if wrong:
        more = [f"(+{len(wrong) - _SHOWN})"] if len(wrong) > _SHOWN else []
        raise SourceError("\n".join([*wrong[:_SHOWN], *more]))
    if not found:
        raise SourceError(_("{file} lists no repositories", file=file))
    return found


def _repository(entry: str, file: Path, number: int) -> Repository:
    if package := _PACKAGE.fullmatch(entry):
        return Repository(package[1].replace("==", "-"), "package", package[1])
    git = entry.startswith("git+")
    source, at, revision = entry.removeprefix("git+").rpartition("@")
    if not at or "/" in revision or (":" in revision and not git):  # git@host:path has no revision
        source, revision = entry.removeprefix("git+"), ""
    if git or _URL.match(source):
        return _git(source, revision, file, number)
    path = file.parent / entry
    if path.is_dir() and not _is_bare(path):
        return Repository(path.resolve().name, "folder", str(path.resolve()))
    if path.is_file() and path.name.lower().endswith(ARCHIVES):
        ends = [end for end in ARCHIVES if path.name.lower().endswith(end)]
        return Repository(path.name[: -len(max(ends, key=len))], "archive", str(path.resolve()))
    local = file.parent / source
    if local.is_dir() and (revision or _is_bare(local)):
        return _git(str(local.resolve()), revision, file, number)
    why = N_(
        "{file}, line {line}: not a folder, archive or Git URL: {entry} (a package of the index is pypi:NAME)"
    )
    raise SourceError(_(why, file=file, line=number, entry=entry))


def _git(source: str, revision: str, file: Path, number: int) -> Repository:
    if revision.startswith("-") or source.startswith("-"):  # git would take it for an option
        said = N_("{file}, line {line}: not a revision: {revision}")
        raise SourceError(_(said, file=file, line=number, revision=revision))
    name = re.split(r"[/:]", source.rstrip("/"))[-1].removesuffix(".git")
    return Repository(f"{name}-{revision[:12]}" if revision else name, "git", source, revision)


def _is_bare(path: Path) -> bool:
    return (path / "HEAD").is_file() and (path / "objects").is_dir()


_LARGEST = 4 << 30  # bytes that an archive may unpack to
_MOST = 200_000  # files
_GIT = (
    *("-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never", "-c", "core.fsmonitor=false"),
    *("-c", "core.askPass=true", "-c", "credential.interactive=never"),
)
_PAUSE = 0.02  # seconds between two looks at a program
# Between a fork and its program no thread of this process may act, so a Python program watches and limits
# itself: the pipe at its standard input is closed when the process that started it is gone. Then its group
# ends, with what it has started; it has to lead a session.
_WATCHED = """\
import os, resource, signal, subprocess, sys, threading
threading.Thread(target=lambda: os.read(0, 1) or os.killpg(0, signal.SIGKILL), daemon=True).start()
memory = int(sys.argv[1])
if memory:
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
code = subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL).returncode
if code < 0:
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


class NotObtainedError(UserError):
    """A repository that cannot be had; the text says why."""


def obtain(repository: Repository, scratch: Path, index_url: str, seconds: float) -> Path:
    """The folder with a repository's files: its own, which nobody writes to, or one below ``scratch``.

    Raises NotObtainedError.
    """
    if repository.kind == "folder":
        if not Path(repository.source).is_dir():
            raise NotObtainedError("{path}: no such file or folder", path=repository.source)
        return Path(repository.source)
    target = scratch / repository.name
    target.mkdir()
    try:
        if repository.kind == "git":
            _from_git(repository, scratch, target, seconds)
        elif repository.kind == "package":
            _unpack(_download(repository.source, scratch, index_url, seconds), target)
        else:
            _unpack(Path(repository.source), target)
    except (OSError, tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise NotObtainedError("{path}: {why}", path=repository.source, why=error) from error
    entries = list(target.iterdir())
    return entries[0] if len(entries) == 1 and entries[0].is_dir() else target


def _download(package: str, scratch: Path, index_url: str, seconds: float) -> Path:
    """The source archive of a package, or its wheel where it has none; unearth builds nothing, pip would."""
    folder = scratch / ".download"
    folder.mkdir()
    why = _("the package index has no archive of it")
    for only in (["--no-binary"], []):
        command = [sys.executable, "-I", "-m", "unearth", package, *only, "--download", str(folder)]
        command += ["--index-url", index_url] if index_url else []
        done = _ran(command, folder, seconds)
        if not done.code:
            # A file of an index on this disk stays where it is.
            return Path(json.loads(done.out)["local_path"])
        if b"No matches" not in done.errors:
            why = _last_line(done)
    raise NotObtainedError("{path}: {why}", path=package, why=why)


def _from_git(repository: Repository, scratch: Path, target: Path, seconds: float) -> None:
    """The files of a revision, by an own bare clone: no configuration of the repository counts here."""
    program = shutil.which("git", path=os.pathsep.join(filter(os.path.isabs, os.get_exec_path())))
    if program is None:
        raise NotObtainedError("git is not installed")
    git, clone, archive = [program, *_GIT], scratch / ".clone", scratch / ".tree.tar"
    _ran([*git, "init", "-q", "--bare", str(clone)], scratch, seconds)
    wanted = repository.revision or "HEAD"
    only = ["fetch", "-q", "--depth=1", "--no-tags", "--", repository.source, wanted]
    done, commit = _ran([*git, *only], clone, seconds), "FETCH_HEAD"
    if done.code:  # a server may not give single commits: all of them then
        every = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"]
        done = _ran([*git, "fetch", "-q", "--", repository.source, *every], clone, seconds)
        commit = f"{wanted}^{{commit}}"
    if not done.code:
        done = _ran([*git, "archive", "--format=tar", f"--output={archive}", commit], clone, seconds)
    if done.code:
        raise NotObtainedError("{path}: git says: {why}", path=repository.source, why=_last_line(done))
    _unpack(archive, target)


def _ran(command: list[str], folder: Path, seconds: float) -> Finished:
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1"}
    done = run(command, folder, environment, seconds)
    if done.code is None:
        raise NotObtainedError("not there after {seconds:.0f} s", seconds=seconds)
    return done


def _last_line(done: Finished) -> str:
    """What a program said when it failed: git's first fatal error, else its last line."""
    lines = done.errors.decode("utf-8", "replace").strip().splitlines()
    fatal = [line for line in lines if line.startswith("fatal:")]
    return (fatal[:1] or lines or [f"exit code {done.code}"])[-1]


def _unpack(archive: Path, target: Path) -> None:
    """The plain files of an archive; links, devices and what leads out of the folder stay in it."""
    size = count = 0
    if archive.name.lower().endswith((".whl", ".zip")):
        with zipfile.ZipFile(archive) as zipped:
            for entry in zipped.infolist():
                size, count = _counted(size + entry.file_size, count + 1)
                if not entry.is_dir() and (entry.external_attr >> 28) in (0, 8):  # a plain file
                    with zipped.open(entry) as stream:
                        _put(stream, entry.filename, target)
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            size, count = _counted(size + member.size, count + 1)
            content = tar.extractfile(member) if member.isfile() else None
            if content:
                _put(content, member.name, target)


def _counted(size: int, count: int) -> tuple[int, int]:
    if size > _LARGEST or count > _MOST:
        raise NotObtainedError(
            "it has more than {size} GiB, or more than {most} files", size=_LARGEST >> 30, most=_MOST
        )
    return size, count


def _put(stream: IO[bytes], name: str, target: Path) -> None:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
        return
    file = target / path
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "wb") as out:
        shutil.copyfileobj(stream, out)


class Finished(NamedTuple):
    """How a program ended: its exit code, None where time was up; what it printed; processor seconds."""

    code: Optional[int]
    out: bytes
    errors: bytes
    cpu: float


def run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float, memory: int = 0
) -> Finished:
    """Run any program in a folder, with ``memory`` bytes where that is not 0; its standard input is empty.

    Where time is up it ends with all that it had started. Raises OSError where Python cannot be started.
    """
    with TemporaryFile() as out, TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WATCHED, str(memory), *command],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=errors,
            start_new_session=True,
        )
        assert process.stdin
        end, late, pid = time.monotonic() + seconds, False, 0
        with process.stdin:
            while not pid:
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                if not pid and not late and time.monotonic() > end:
                    late = True
                    os.killpg(process.pid, signal.SIGKILL)
                time.sleep(0 if pid else _PAUSE)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode < 0:  # killed from outside: what it had started would write on
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for file in (out, errors):
            file.seek(0)
        code = None if late else process.returncode
        return Finished(code, out.read(), errors.read(), usage.ru_utime + usage.ru_stime)
