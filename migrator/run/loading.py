"""The one model of a project, from its files: each is read once, or known from the cache.

Most runs of lint know all from the cache: what reads files is imported when there is a file to read.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from migrator.field_types import from_json, to_json
from migrator.files.document import document
from migrator.files.errors import Unreadable
from migrator.files.source import read_bytes
from migrator.findings.finding import internal_error
from migrator.light import NamedTuple
from migrator.project.frameworks import TORCH, of_project, shown_framework
from migrator.project.module_names import folders_around, npu_twins, packages_of
from migrator.project.wanted_versions import lines_with_versions
from migrator.run.cache import Cache, digest
from migrator.run.processes import GivenUpError, Progress, processes_for, spread

if TYPE_CHECKING:
    from migrator.files.discover import Entry
    from migrator.findings.finding import Result
    from migrator.native.model import NativeFile
    from migrator.project.entry import Candidate
    from migrator.project.facts import FileFacts
    from migrator.project.project import Project

# Without one of these a file tells nothing that another one has to know: of a class with a CUDA member, of an
# extension that it builds (CUDAExtension, cpp_extension, an OpBuilder, a source file), or of all the program.
_MAY_TELL = (
    b"cuda|def forward(|, device|(device|torch.device(|map_location|import torch as |local_rank|attr(torch"
    b"|attr(F,|attr(nn|torch.__version__|torch.version|= torch\n|torch.save(|save_on_master(|save_checkpoint("
    b"|nccl|horovod|init_process_group|all_reduce|reduce_scatter|torch.double|torch.float64|.double()|.cu"
    b"|jit.script|.CUDA|.GPU|torch.jit import|xtension|OpBuilder|LightningModule|fairscale.nn"
    b"|GPU\"|GPU'|GPU=|num_gpus\"|num_gpus'|num_gpus="
).split(b"|")


class PythonFile(NamedTuple):
    """A Python file or notebook: its name inside the project; its ``data`` where that is not on the disk."""

    name: str
    path: Path
    data: Optional[bytes] = None


class Read(NamedTuple):
    """What a Python file tells, and the digest of the content that told it: it may just have changed.

    ``failed`` is the internal error that kept it from telling; ``framework`` the one that it shows, empty
    for who knows it already.
    """

    content: bytes
    facts: FileFacts
    start: Optional[Candidate] = None
    failed: Optional[Result] = None
    framework: str = ""


def may_tell(data: bytes, framework: str) -> bool:
    """A quick look: whether a Python file may tell anything that another one has to know.

    ``framework`` is what the file shows.
    """
    return framework not in ("", TORCH) or any(map(data.__contains__, _MAY_TELL))


def load_project(
    entries: Iterable[Entry],
    jobs: Optional[int],
    starts: bool = False,
    meanwhile: Iterator[None] = iter(()),
    progress: Progress = lambda stage, done, total: None,
) -> tuple[Project, int]:
    """The Project of all that is Python, C++ or CUDA, and how many bytes its Python files have.

    ``jobs`` is the number of processes, None for as many as are worth it; with ``starts`` the files tell also
    how programs are started. What cannot be read is left out: it is reported when its turn comes.
    ``meanwhile`` is gone through while other processes read.
    """
    from migrator.native.model import native_bytes
    from migrator.project.programs import Programs
    from migrator.project.project import merge_facts

    every = list(entries)
    python = [PythonFile(entry.name, entry.path) for entry in every if entry.holds_python]
    size = sum(size_of(file.path) for file in python)
    told = []
    for item in spread(python, processes_for(size, jobs), _read, starts):
        told.append(item)
        progress("scanning", len(told), len(python))
        next(meanwhile, None)
    for _ in meanwhile:  # what is left
        pass
    native = read_native(
        native_bytes((entry.name, entry.path) for entry in every if entry.kind == "file"), jobs
    )
    project = merge_facts(
        (item.facts for item in told), [facts for facts, _ in native], (entry.name for entry in every)
    )
    failed = [*(item.failed for item in told), *(error for _, error in native)]
    return replace(
        project,
        starts=tuple(item.start for item in told if item.start),
        failed={each.name: each for each in failed if each},
        requirements=tuple(lines_with_versions(root_of(python[0].path, python[0].name))) if python else (),
        programs=Programs(
            {entry.name: entry.path for entry in every if entry.kind == "python"},
            frozenset(entry.name for entry in every if entry.kind == "text"),
        ),
        frameworks=Counter(item.framework for item in told if item.framework),
    ), size


def root_of(path: Path, name: str) -> Path:
    """The folder of a project in which a file at ``path`` has a name."""
    return path.parents[min(name.count("/"), len(path.parents) - 1)]


def size_of(path: Path) -> int:
    """How many bytes a file has; 0 where it is unknown."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


class Loader:
    """The project of files whose facts a cache may know: ``add`` each, then ask for ``key`` and ``project``.

    ``native`` are the C++ and CUDA files, by their names inside the project; ``jobs`` is the number of
    processes that read the files, None for as many as are worth it.
    """

    def __init__(self, cache: Cache, native: Sequence[tuple[str, Path]], jobs: Optional[int]) -> None:
        self._cache = cache
        self._native = native
        self._jobs = jobs
        self._every: list[PythonFile] = []
        self._files: list[tuple[PythonFile, bytes]] = []  # that may tell, with the digest of the content
        self._size = 0
        self.other_names: list[str] = []  # of texts of other types
        self.is_whole = False  # whether these are all files of a project
        self._failed: dict[str, Result] = {}
        self.frameworks: Counter[str] = Counter()  # of the files
        # C++ and CUDA files that an internal error kept from telling.
        self.native_failed: dict[str, Result] = {}

    def add(self, file: PythonFile, data: bytes, content: bytes) -> None:
        """Remember a Python file; ``content`` is the digest of its data."""
        self._every.append(file)
        framework = shown_framework(data, file.name)
        if framework:
            self.frameworks[framework] += 1
        if may_tell(data, framework):
            self._files.append((file, content))
            self._size += len(data)

    def key(self) -> bytes:
        """A digest of all that one file can know of the others."""
        told = [facts[::2] for facts in self._facts if facts[0] or facts[2]]
        known = [told, self._operators, sorted(self._packages), sorted(self._twins), self._requirements]
        known += [sorted(of_project(self.frameworks)), self.is_whole]
        return digest(json.dumps(known).encode("ascii"))

    @cached_property
    def project(self) -> Project:
        """What one file has to know of the others."""
        from migrator.project.facts import FileFacts
        from migrator.project.offers import Offers
        from migrator.project.operators import Catalog
        from migrator.project.project import Project, classes_of

        telling = (facts for facts in self._facts if facts[0] or facts[2])
        known = [*filter(None, (from_json(FileFacts, facts) for facts in telling))]
        operators = from_json(Catalog, self._operators) or Catalog()
        return Project(
            *(classes_of(known), operators),
            packages=self._packages,
            twins=self._twins,
            failed=self._failed,
            offers=Offers.of_all(facts.offers for facts in known),
            requirements=tuple(self._requirements),
            frameworks=self.frameworks,
            files=int(self.is_whole),  # no number of them: another file would make each result another
        )

    @cached_property
    def _requirements(self) -> list[str]:
        """The lines that may ask for a version of a library: findings about its functions depend on it."""
        roots = (root_of(file.path, file.name) for file in self._every[:1])
        return [line for root in roots for line in lines_with_versions(root)]

    @cached_property
    def _packages(self) -> frozenset[str]:
        folders = {file.name.rpartition("/")[0]: file.path.parent for file in self._every}
        return packages_of({*(file.name for file in self._every), *_beside(folders)})

    @cached_property
    def _twins(self) -> frozenset[str]:
        return npu_twins([*(file.name for file in self._every), *self.other_names])

    @cached_property
    def _facts(self) -> list[Any]:
        """What each file tells, as the cache keeps it."""
        every = [self._cache.get(_key(*file), _FACTS) for file in self._files]
        unknown = [place for place, facts in enumerate(every) if facts is None]
        if unknown:
            files = [self._files[place][0] for place in unknown]
            read = spread(files, processes_for(self._size, self._jobs), _read, False, True)
            for place, file, item in zip(unknown, files, read):
                every[place] = to_json(item.facts)
                if item.failed:
                    self._failed[file.name] = item.failed
                else:
                    self._cache.put(_key(file, item.content), every[place])
        return every

    @cached_property
    def _operators(self) -> Any:
        """The CUDA operators, as the cache keeps them: to find them may take seconds. Empty without any."""
        building = [facts for facts in self._facts if facts[1]]
        if not self._native and not building:
            return []
        from migrator.native.model import native_bytes

        native = native_bytes(self._native)
        contents = [[name, digest(data).hex()] for name, data in native.items()]
        key = digest(b"operators", json.dumps([contents, building]).encode("ascii"))
        known = self._cache.get(key, tuple[Any, ...])
        if known is None:
            from migrator.project.facts import FileFacts
            from migrator.project.project import merge_facts

            parts = filter(None, (from_json(FileFacts, facts) for facts in building))
            told = read_native(native, self._jobs)
            self.native_failed = {error.name: error for _, error in told if error}
            catalog = merge_facts(parts, [facts for facts, _ in told]).operators
            # Only the reports of a migration need the operators of each file, and the text of load_inline.
            built = {place: item._replace(text=None) for place, item in catalog.extensions.items()}
            known = to_json(replace(catalog, in_file={}, extensions=built))
            if not self.native_failed:
                self._cache.put(key, known)
        return known


# The form of FileFacts as far as shows whether there are any: their own module takes long to load.
_FACTS = tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]


def _beside(folders: Mapping[str, Path]) -> Iterator[str]:
    """The names of the modules and packages on the disk in some folders and in those around them."""
    every: dict[str, Path] = {}
    for folder, path in folders.items():
        every.update(zip(folders_around(f"{folder}/" if folder else ""), (path, *path.parents)))
    for folder, path in every.items():
        try:
            listed = os.listdir(path)
        except OSError:  # the text of the file is not from the disk
            continue
        for name in listed:
            if name.endswith(".py"):
                yield posixpath.join(folder, name)
            elif "." not in name and os.path.isfile(path / name / "__init__.py"):
                yield posixpath.join(folder, name, "__init__.py")


def _key(file: PythonFile, content: bytes) -> bytes:
    return digest(b"facts", file.name.encode("utf-8", "surrogatepass"), content)


def _read(file: PythonFile, starts: bool, looked: bool = False) -> Read:
    from migrator.names.outline import uncollected
    from migrator.project.facts import FileFacts, scan_file

    data, framework, facts, start, failed = b"", "", FileFacts(), None, None
    try:
        data = read_bytes(file.path) if file.data is None else file.data
        with uncollected():
            framework = "" if looked else shown_framework(data, file.name)
            if starts or looked or may_tell(data, framework):
                text = document(data, file.name).text
                facts = scan_file(file.name, text)
            if starts:
                from migrator.project.entry import scan_start

                start = scan_start(file.name, text)
    except Unreadable:  # reported when its turn comes to be checked
        pass
    except (Exception, GivenUpError) as error:
        failed = internal_error(file.name, error)
    return Read(digest(data), facts, start, failed, framework)


def read_native(files: Mapping[str, bytes], jobs: Optional[int]) -> list[tuple[NativeFile, Optional[Result]]]:
    """What C++ and CUDA files, by their names, define; nothing where none has to do with CUDA.

    With each the internal error that kept it from telling, None without.
    """
    if not files:
        return []
    from migrator.native.functions import texts_to_scan

    size = sum(map(len, files.values()))
    return list(spread(texts_to_scan(files), processes_for(size, jobs), _read_text))


def _read_text(file: tuple[str, str]) -> tuple[NativeFile, Optional[Result]]:
    from migrator.native.functions import scan_native
    from migrator.native.model import NativeFile

    try:
        return scan_native(*file), None
    except (Exception, GivenUpError) as error:
        return NativeFile(file[0]), internal_error(file[0], error)
