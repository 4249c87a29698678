"""From the files of a run to their findings: from the cache, or by the engine where it does not know them.

The engine is loaded only where the cache does not know a file: most runs need none.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Callable, NamedTuple, Optional

from migrator.files.document import type_of
from migrator.files.errors import Unreadable, shown
from migrator.findings.finding import Finding
from migrator.lint.files import Target, data_of
from migrator.lint.options import Options, ignored_codes, with_origin
from migrator.lint.rule_sets import RuleSet, rule_set, rules_of
from migrator.run.cache import Cache, digest
from migrator.run.json_form import to_json
from migrator.run.loading import Loader, PythonFile, size_of
from migrator.run.processes import Progress, processes_for, spread

Trouble = Callable[[str], None]


class Job(NamedTuple):
    """A file and what decides which findings count in it.

    ``ignored`` are codes, or beginnings of codes, that do not.
    """

    target: Target
    rules: RuleSet
    ignored: tuple[str, ...] = ()


class Checked(NamedTuple):
    """The findings that remain in a file; ``trouble`` is why it could not be looked at."""

    found: tuple[Finding, ...] = ()
    trouble: str = ""


def read_files(
    targets: Sequence[Target], loader: Loader, noqa: bool, trouble: Trouble, progress: Progress
) -> list[tuple[Job, bytes]]:
    """Read each file once; gives those that can be looked at, with the digest of their content.

    ``trouble`` is given a line for each other one.
    """
    files = []
    last: Optional[tuple[Options, RuleSet]] = None  # the next file's are the same
    for number, target in enumerate(targets):
        progress("reading", number, len(targets))
        options = target.options
        try:
            if last is None or last[0] is not options:
                last = options, rule_set(options, noqa)
            data = data_of(target)
        except ValueError as error:  # UnknownVersion, ConfigError
            trouble(with_origin(options, error))
        except Unreadable as error:
            trouble(f"{shown(target.path)}: {error}")
        else:
            content = digest(data)
            if not type_of(target.name, data):
                loader.add(PythonFile(target.name, target.place, target.data), data, content)
            files.append((Job(target, last[1], ignored_codes(options, target.place)), content))
    progress("reading", len(targets), len(targets))
    return files


def check_files(
    files: Sequence[tuple[Job, bytes]],
    loader: Loader,
    cache: Cache,
    processes: Optional[int],
    trouble: Trouble,
    progress: Progress,
) -> list[Checked]:
    """What is found in each of the files that ``read_files`` gave.

    ``trouble`` is given a line for each set of rules that cannot be used.
    """
    project = loader.key()
    results = [
        _known(cache.get(_key(*file, project), tuple[Finding, ...]), file[0].target.path) for file in files
    ]
    missing = [
        place
        for place, known in enumerate(results)
        if known is None and _has_rules(files[place][0], cache, trouble)
    ]
    if missing:
        from migrator.lint.file import check_job

        jobs = [files[place][0] for place in missing]
        size = sum(size_of(job.target.place) for job in jobs if job.target.data is None)
        done = spread(jobs, processes_for(size, processes), check_job, loader.project)
        for number, (place, job, (content, checked)) in enumerate(zip(missing, jobs, done), 1):
            results[place] = checked
            if not checked.trouble:
                cache.put(_key(job, content, project), [to_json(item) for item in checked.found])
            progress("linting", number, len(missing))
    cache.flush()
    return [checked or Checked() for checked in results]


def _known(found: Optional[tuple[Finding, ...]], path: str) -> Optional[Checked]:
    """What the cache knows of a file; the user may have spelled its path otherwise then."""
    if found is None:
        return None
    return Checked(tuple(item if item.file == path else item._replace(file=path) for item in found))


def _key(job: Job, content: bytes, project: bytes) -> bytes:
    name = job.target.name.encode("utf-8", "surrogatepass")
    return digest(content, _rules_key(job.rules), project, name, repr(job.ignored).encode())


@cache
def _rules_key(rules: RuleSet) -> bytes:
    return digest(repr(rules).encode("utf-8", "surrogatepass"))


def _has_rules(job: Job, cache: Cache, trouble: Trouble) -> bool:
    """Make the rules for a file, for the processes to come, too; what cannot be used is told."""
    try:
        rules_of(job.rules, cache)
    except ValueError as error:  # RuleError
        trouble(with_origin(job.target.options, error))
        return False
    return True
