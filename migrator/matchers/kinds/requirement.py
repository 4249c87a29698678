"""Kind ``requirement``: packages that a project has installed, in requirements, settings and commands."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal, Optional

from migrator.api_support.companions import ReleaseSet, recommended
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import FileContext, Match, TextContext, found_in_text
from migrator.matchers.options import SAID
from migrator.matchers.packs import Options, Rule
from migrator.names.index import ModuleIndex
from migrator.names.tree import called_name, string_value
from migrator.other_files.index import Content, Requirement, Span, TextIndex
from migrator.other_files.requirements import alone_on_line, requirement_at, requirements_of

_TORCH, _TORCH_NPU = ("torch", "pytorch"), "torch-npu"
_FAMILY = (*_TORCH, "torchvision", "torchaudio", _TORCH_NPU)
_SETUP_LISTS = ("install_requires", "extras_require", "setup_requires", "tests_require")
# Lists for one machine: they name one version.
_INSTALLED = ("requirements", "shell", "dockerfile", "makefile", "markdown", "rst", "yaml")
_PIN = re.compile(r"===?\s*v?[\w.+!]+\Z")
# Options by which pip asks one index alone; torch_npu is not in those of torch.
_INDEX = ("--index-url", "-i")
_PIN_OF_POETRY = re.compile(r"(?:==?\s*)?\d+(?:\.\d+)*(?:\+\w+)?\Z")


@dataclass(frozen=True)
class RequirementOptions(Options):
    """What is done with a package: ``version`` writes that of the named torch, ``excluded`` reports one that
    excludes it; ``replace`` writes another package, ``remove`` takes the line away, ``report`` only speaks.

    ``packages``: for each what is written in its place, or what to do. ``not_in``: names of files that are
    for other machines than those with NPUs, such as those that build documents.
    """

    action: Literal["version", "excluded", "replace", "remove", "report"] = "report"
    packages: dict[str, str] = field(default_factory=dict, metadata=SAID)
    not_in: tuple[str, ...] = ()


def find(context: TextContext, rules: list[Rule[RequirementOptions]]) -> Iterator[Match]:
    """The requirements that a rule has something to say of."""
    name = context.index.name
    rules = [rule for rule in rules if not any(fnmatchcase(name, one) for one in rule.options.not_in)]
    every = list(requirements_of(context.index))
    by_action: dict[str, Rule[RequirementOptions]] = {rule.options.action: rule for rule in rules}
    release = recommended(context.version.text)
    for item in every:
        if release and item.name in _FAMILY:
            yield from _versions(context, by_action, item, every, release)
            continue
        for rule in rules:
            value = _told(rule, item)
            if value is not None:
                with_list = _emptied(context, rules, item, every) if rule.options.action == "remove" else ()
                yield _package(context, rule, item, value, with_list)
                break


def _told(rule: Rule[RequirementOptions], item: Requirement) -> Optional[str]:
    """What a rule says of a package; None where it is not about it."""
    known = rule.options.packages
    return next((known[one] for one in known if fnmatchcase(item.name, one)), None)


def _emptied(
    context: TextContext, rules: list[Rule[RequirementOptions]], item: Requirement, every: list[Requirement]
) -> Sequence[Edit]:
    """The edits that remove a list of pip's in an environment.yml, where none of its items stays.

    They go with its first item: conda does not take an empty ``- pip:``.
    """
    if context.index.type != "yaml" or not item.group.endswith(".pip"):
        return ()
    items = [one for one in every if one.group == item.group]
    settings = context.index.content.settings
    if any(one.kind == "option" and one.command is None for one in settings):
        return ()
    written = [one for one in settings if one.name.rpartition(".")[0] == item.group]
    removed = [rule for rule in rules if rule.options.action == "remove"]
    gone = [one for one in items if one.line and any(_told(rule, one) is not None for rule in removed)]
    holder = next((one for one in settings if one.name == item.group), None)
    if items[0] is not item or len(gone) < len(written) or len(gone) < len(items) or holder is None:
        return ()
    lines = context.index.lines
    number = lines.line_of(holder.name_span[0])
    if context.index.text_of(lines.span(number, number)).split("#")[0].strip() != "- pip:":
        return ()
    return [Edit(*lines.span(number, number), ""), *(Edit(*one.line, "") for one in gone if one.line)]


def find_in_setup(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Torch, and what is built for it, in the lists that ``setup()`` is given."""
    release = recommended(context.version.text)
    other = _setup(context)
    every = other.index.content.requirements
    for item in every:
        if release and item.name in _FAMILY:
            yield from _versions(other, {"version": rule, "excluded": rule}, item, every, release)


def find_packages_in_setup(context: FileContext, rule: Rule[RequirementOptions]) -> Iterator[Match]:
    """Packages for CUDA in the lists that ``setup()`` is given."""
    other = _setup(context)
    for item in other.index.content.requirements:
        value = _told(rule, item)
        if value is not None:
            yield _package(other, rule, item, value)


def _setup(context: FileContext) -> TextContext:
    """What ``setup()`` is given, as that of a file that is no Python."""
    index = context.index
    content = Content(requirements=tuple(dict.fromkeys(_of_setup(index))))
    text = TextIndex(context.name, "setup", index.lines, content)
    return TextContext(text, context.version, context.project, context.hardware, context.vocabularies)


def _of_setup(index: ModuleIndex) -> Iterator[Requirement]:
    for call in index.calls:
        if called_name(call) == "setup":
            for keyword in call.keywords:
                if keyword.arg in _SETUP_LISTS:
                    yield from _in_value(index, keyword.value, keyword.arg)


def _in_value(index: ModuleIndex, value: ast.expr, group: str) -> Iterator[Requirement]:
    """The requirements in a list, a dictionary of lists, or what a name was assigned."""
    if isinstance(value, ast.Name):
        for assigned in index.assigned(value):
            if not isinstance(assigned, ast.Name):
                yield from _in_value(index, assigned, group)
    elif isinstance(value, ast.Dict):
        for part in value.values:
            yield from _in_value(index, part, f"{group} {index.start(part)}")
    elif isinstance(value, (ast.List, ast.Tuple)):
        for part in value.elts:
            text, raw = string_value(part), index.segment(part)
            if text is not None and raw[1:-1] == text:
                span = index.start(part), index.end(part)
                line = alone_on_line(index.lines, span)
                item = requirement_at(text, span[0] + 1, span=span, group=group, line=line)
                if item is not None:
                    yield item


def _package(
    context: TextContext,
    rule: Rule[RequirementOptions],
    item: Requirement,
    value: str,
    with_list: Sequence[Edit] = (),
) -> Match:
    action, edits, message = rule.options.action, list[Edit](), rule.message
    if action == "replace" and not item.address and item.by != "poetry":
        name = item.specifier_span[0] if item.specifier else item.span[1]
        written = context.index.text_of((item.span[0], name))
        start = item.span[0] + (written[:1] in "\"'")
        # What it is replaced by has versions of its own.
        end = item.specifier_span[1] if item.specifier else start + len(item.name)
        edits = [Edit(start, end, value)]
    elif action == "remove" and item.line is not None and not item.locked:
        edits = list(with_list) or [Edit(*item.line, "")]
    if action == "replace":
        message = _("{name} needs CUDA; use {value}", name=item.name, value=value)
        value = "" if edits else _("Write {value}.", value=value)
    return found_in_text(context, rule, item.span, api=item.name, edits=edits, message=message, advice=value)


def _versions(
    context: TextContext,
    by_action: dict[str, Rule[RequirementOptions]],
    item: Requirement,
    every: Sequence[Requirement],
    release: ReleaseSet,
) -> Iterator[Match]:
    """Torch and what is built for it: the versions that belong together."""
    torch = context.version.text
    wanted = {
        "torchvision": release.torchvision,
        "torchaudio": release.torchaudio,
        _TORCH_NPU: release.torch_npu,
    }
    version = wanted.get(item.name, torch)
    if not version or not _is_for_linux(item):
        return
    excluding, writing = by_action.get("excluded"), by_action.get("version")
    pin = _PIN_OF_POETRY if item.by == "poetry" else _PIN
    fits, pinned = _fits(item, version), bool(pin.match(item.specifier))
    # What the sentences speak of; each takes what it names.
    about = {"name": item.name, "specifier": item.specifier, "version": version, "torch": torch}
    if item.locked or item.address or item.by == "conda" or fits is None:
        for_cuda = "+cu" in item.specifier or "cu1" in item.address
        if excluding is not None and (for_cuda or not fits or item.by == "conda"):
            message = _why(item, version)
            yield found_in_text(
                context, excluding, item.span, api=item.name, message=message, severity="warning"
            )
    elif not fits and not pinned:
        if excluding is not None:
            if item.name in _TORCH:
                message = _(
                    "{name} {specifier} excludes torch {torch}, the version of this migration", **about
                )
            else:
                message = _("{name} {specifier} excludes {version}, which is for torch {torch}", **about)
            advice = _("Migrate for a torch version that it allows (-v), or allow {version}.", **about)
            yield found_in_text(context, excluding, item.span, api=item.name, message=message, advice=advice)
    elif writing is not None:
        pins = pinned or (item.name == "torch" and context.index.type in _INSTALLED)
        edits = [Edit(*item.specifier_span, f"=={version}")] if pins and not (pinned and fits) else []
        if item.name == "torch":
            edits += _torch_npu(context, item, every, release.torch_npu)
        if item.name == _TORCH_NPU:
            message = _("torch_npu {version} is the release for torch {torch}", **about)
        else:
            message = _(
                "{name} {version} matches torch_npu {torch_npu}", **about, torch_npu=release.torch_npu
            )
        if edits:
            yield found_in_text(
                context, writing, item.span, api=item.name, edits=edits, message=message, severity="warning"
            )


def _torch_npu(
    context: TextContext, item: Requirement, every: Sequence[Requirement], version: str
) -> list[Edit]:
    """The requirement of torch_npu beside the first one of torch in a list, where the file has none."""
    first = next(one for one in every if one.name == "torch" and one.group == item.group)
    if first is not item or any(one.name == _TORCH_NPU for one in every):
        return []
    of_machine = item.group.startswith("command") or context.index.name.endswith("Pipfile")
    exact = of_machine or context.index.type in _INSTALLED
    new = f"torch_npu=={version}" if exact else f"torch_npu=={'.'.join(version.split('.')[:3])}.*"
    if item.by == "poetry":
        new = new.replace("_", "-").replace("==", ' = "==', 1) + '"'
    written = context.index.text_of(item.span)
    quote = written[0] if written[:1] in ("'", '"') else ""
    if item.line is None:
        return _in_command(context.index, item, quote, new) if item.group.startswith("command") else []
    start, end = item.line
    line = context.index.text_of(item.line)
    ending = line[len(line.rstrip("\r\n")) :]
    marker = f" ; {item.marker}" if item.marker else ""
    before = context.index.text_of((start, item.span[0])) if item.by != "poetry" else ""
    if item.by == "poetry":
        quote = ""
    comma = "," if quote and context.index.type in ("toml", "setup") else ""
    text = f"{before}{quote}{new}{marker}{quote}{comma}"
    if not ending:  # the last line of a file
        return [Edit(end, end, f"\n{text}")]
    behind = context.index.data[item.span[1] : end].strip() if comma else b","
    if not behind:  # the last item of a list, without a comma
        return [Edit(item.span[1], item.span[1], f",{ending}{text.rstrip(',')}")]
    if behind[:1] != b",":
        return []
    return [Edit(end, end, text + ending)]


def _in_command(index: TextIndex, item: Requirement, quote: str, new: str) -> list[Edit]:
    """torch_npu in a command that installs torch; in one of its own where that takes torch's index alone.

    Nothing where a quote of the command is left open: what is put behind it would be a part of the string.
    """
    end = item.span[1]
    if index.data[item.span[0] - 1 : item.span[0]] == b'"':  # a word of a list of strings
        return [Edit(end, end, f'", "{new}')]
    command = index.content.commands[int(item.group.rpartition(" ")[2])]
    texts = [word.text or "" for word in command.words]
    if any(text.startswith(_INDEX) for text in texts) and "install" in texts:
        if _has_open_quote(index, command.span):
            return []
        start, end = command.words[0].span[0], command.words[texts.index("install")].span[1]
        own = index.text_of((start, end))
        return [Edit(command.span[1], command.span[1], f" && {own} {quote}{new}{quote}")]
    return [Edit(end, end, f" {quote}{new}{quote}")]


def _has_open_quote(index: TextIndex, span: Span) -> bool:
    """Whether a quote is left open in a command, or right behind what is read of one."""
    try:
        shlex.split(index.text_of(span), comments=True)
    except ValueError:
        return True
    return index.data[span[1] :].lstrip(b" \t")[:1] in (b"'", b'"')


def _is_for_linux(item: Requirement) -> bool:
    """Whether a requirement's marker admits a machine with Linux, for some Python."""
    if not item.marker:
        return True
    from packaging.markers import InvalidMarker, Marker, UndefinedEnvironmentName  # as above

    linux = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
    machines = [
        {
            **linux,
            "platform_machine": machine,
            "python_version": f"3.{minor}",
            "python_full_version": f"3.{minor}.9",
        }
        for machine in ("aarch64", "x86_64")
        for minor in range(8, 15)
    ]
    try:
        marker = Marker(item.marker)
        return (
            any(marker.evaluate({**machine, "extra": ""}) for machine in machines) or "extra" in item.marker
        )
    except (InvalidMarker, UndefinedEnvironmentName):
        return True


def _fits(item: Requirement, version: str) -> Optional[bool]:
    """Whether a requirement admits a version; None where that cannot be told."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # who reads rule packs loads this module

    if item.by == "poetry":
        found = re.match(r"(\^|~|==|=|>=)?\s*(\d+(?:\.\d+)*)(?:\+\w+)?\Z", item.specifier)
        if item.specifier == "*":
            return True
        if found is None:
            return None
        sign = {"^": "~=", "~": "~=", "=": "==", None: "=="}.get(found[1], found[1])
        number = ".".join((*found[2].split("."), "0")[:2]) if sign == "~=" else found[2]
        return SpecifierSet(f"{sign}{number}").contains(version)
    try:
        return SpecifierSet(item.specifier).contains(version, prereleases=True)
    except InvalidSpecifier:
        return None


def _why(item: Requirement, version: str) -> str:
    about = {"name": item.name, "version": version}
    if item.by == "conda":
        return _(
            "conda's {name} is built for CUDA or has no torch_npu: install {name} {version} with pip", **about
        )
    where = item.specifier
    if item.address:
        where = _("from {address}", address=item.address)
    if item.locked:
        where = _("with its hashes")
    return _("{name} {where}: install {version}", **about, where=where)
