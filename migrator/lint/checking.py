"""From the files of a run to their findings: from the cache, or by the engine where it does not know them.

The engine is loaded only where the cache does not know a file: most runs need none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import Callable, Optional

from migrator.files.errors import Unreadable, shown
from migrator.lint.diagnostic import Checked
from migrator.lint.files import Target, name_in_project
from migrator.lint.jobs import Job, RuleSet, rule_set
from migrator.lint.options import Options, ignored_codes, with_origin
from migrator.lint.texts import Texts
from migrator.run.cache import Cache, digest, pack, unpack
from migrator.run.loading import Loader, PythonFile

Trouble = Callable[[str], None]


class Checker:
    """Looks at files. ``trouble`` is given a line for each file or set of rules that cannot be used."""

    def __init__(
        self,
        cache: Cache,
        texts: Texts,
        loader: Loader,
        noqa: bool,
        processes: Optional[int],
        trouble: Trouble,
    ) -> None:
        self._cache = cache
        self._texts = texts
        self._loader = loader
        self._noqa = noqa
        self._processes = processes
        self._trouble = trouble
        self._rule_keys: dict[RuleSet, bytes] = {}
        self._rules: Optional[tuple[Options, RuleSet]] = (
            None  # those of the last file: the next one's are the same
        )

    def readable(self, targets: Sequence[Target]) -> list[tuple[Target, bytes]]:
        """Read every file once; gives those that can be read, with the digest of their content."""
        found = []
        for target in targets:
            if not self._usable(target):
                continue
            try:
                data = self._texts.data(target)
                content = digest(data)
                self._loader.add(self._file(target), data, content)
            except Unreadable as error:
                self._trouble(f"{shown(target.path)}: {error}")
                continue
            found.append((target, content))
        return found

    def check(self, files: Sequence[tuple[Target, bytes]]) -> list[Checked]:
        """What is found in each of the files that ``readable`` gave."""
        project_key = self._loader.key()
        results: list[Optional[Checked]] = []
        missing: list[tuple[int, tuple[str, ...]]] = []
        for place, (target, content) in enumerate(files):
            ignored = ignored_codes(target.options, target.place)
            key = self._key(target, content, project_key, ignored)
            known = self._cache.get(key)
            results.append(unpack(known, target.path) if known is not None else None)
            if known is None:
                missing.append((place, ignored))
        if missing:
            from migrator.lint.processes import check_files

            missing = [item for item in missing if self._has_engine(files[item[0]][0])]
            jobs = [self._job(files[place][0], ignored) for place, ignored in missing]
            done = check_files(jobs, self._loader.project(), self._processes)
            for (place, ignored), (content, checked) in zip(missing, done):
                results[place] = checked
                if not checked.trouble:
                    key = self._key(files[place][0], content, project_key, ignored)
                    self._cache.put(key, pack(checked))
        self._cache.flush()
        return [checked or Checked() for checked in results]

    def rules(self, target: Target) -> RuleSet:
        """The rules for a file. Raises UnknownVersion and ConfigError."""
        if self._rules is None or self._rules[0] is not target.options:
            self._rules = (target.options, rule_set(target.options, self._noqa))
        return self._rules[1]

    def _usable(self, target: Target) -> bool:
        """Whether the rules for a file can be used; if not, that is told."""
        try:
            self.rules(target)
        except ValueError as error:  # UnknownVersion, ConfigError
            self._trouble(with_origin(target.options, error))
            return False
        return True

    def _key(self, target: Target, content: bytes, project: bytes, ignored: tuple[str, ...]) -> bytes:
        rules = self.rules(target)
        if rules not in self._rule_keys:
            self._rule_keys[rules] = digest(repr(astuple(rules)).encode("utf-8", "surrogatepass"))
        name = name_in_project(target).encode("utf-8", "surrogatepass")
        return digest(content, self._rule_keys[rules], project, name, repr(ignored).encode())

    def _has_engine(self, target: Target) -> bool:
        """Make the engine for a file, for the processes to come, too; what it cannot use is told."""
        from migrator.lint.engines import RuleError, engine_for

        try:
            engine_for(self.rules(target), cache=self._cache)
        except RuleError as error:
            self._trouble(with_origin(target.options, error))
            return False
        return True

    def _job(self, target: Target, ignored: tuple[str, ...]) -> Job:
        file = self._file(target)
        return Job(target.path, file.path, file.name, self.rules(target), ignored, file.data)

    def _file(self, target: Target) -> PythonFile:
        return PythonFile(name_in_project(target), target.place, self._texts.given.get(target.place))
