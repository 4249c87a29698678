"""Kind ``requirement``: packages that a project has installed, in requirements, settings and commands."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from typing import Literal, Optional

from migrator.api_support.companions import ReleaseSet, recommended
from migrator.files.source import newline_of
from migrator.findings.finding import Edit
from migrator.language import N_, _
from migrator.matchers.context import FileContext, Match, Said, TextContext, found_in_text
from migrator.matchers.options import SAID
from migrator.matchers.packs import Options, Rule
from migrator.names.index import ModuleIndex
from migrator.names.made_from import made_from
from migrator.names.tree import called_name, string_value
from migrator.other_files.index import Content, Requirement, TextIndex
from migrator.other_files.requirements import ONE_INDEX, alone_on_line, requirement_at, requirements_of
from migrator.project.wanted_versions import limits_hold, limits_of

_TORCH, _TORCH_NPU = ("torch", "pytorch"), "torch-npu"
_FAMILY = (*_TORCH, "torchvision", "torchaudio", _TORCH_NPU)
_SETUP_LISTS = ("install_requires", "extras_require", "setup_requires", "tests_require")
# Lists for one machine: they name one version.
_INSTALLED = ("requirements", "shell", "dockerfile", "makefile", "markdown", "rst", "yaml")
_OWN_NAME = ("project.name", "tool.poetry.name")
_EXTRA = re.compile(r"optional-dependencies|extras_require|dependency-groups|poetry\.group")
_PIN = re.compile(r"===?\s*v?[\w.+!]+\Z")
_PIN_OF_POETRY = re.compile(r"(?:==?\s*)?\d+(?:\.\d+)*(?:\+\w+)?\Z")


class RequirementOptions(Options):
    """What is done with a package: ``version`` writes that of the named torch, ``excluded`` reports one that
    excludes it; ``replace`` writes another package, ``remove`` takes the line away, ``report`` only speaks;
    ``older`` does where only versions before that of ``packages`` are asked for.

    ``packages``: for each what is written in its place, or what to do. ``not_in``: names of files that are
    for other machines than those with NPUs, such as those that build documents.
    """

    action: Literal["version", "excluded", "replace", "remove", "report", "older"] = "report"
    packages: dict[str, str] = field(default_factory=dict, metadata=SAID)
    not_in: tuple[str, ...] = ()


def find(context: TextContext, rules: list[Rule[RequirementOptions]]) -> Iterator[Match]:
    """The requirements that a rule has something to say of; none on GitHub's machines, which have no NPUs."""
    name = context.index.name
    rules = [rule for rule in rules if not any(fnmatchcase(name, one) for one in rule.options.not_in)]
    machines = [each.value or "" for each in context.index.content.settings if each.name.endswith("runs-on")]
    if not machines or not all(re.match("(ubuntu|windows|macos)-", each) for each in machines):
        yield from _found(context, rules, list(requirements_of(context.index)))


def find_in_setup(context: FileContext, rule: Rule[RequirementOptions]) -> Iterator[Match]:
    """The same of the lists that ``setup()`` is given."""
    index = context.index
    keywords = (each for call in index.calls if called_name(call) == "setup" for each in call.keywords)
    lists = ((each.value, each.arg) for each in keywords if each.arg in _SETUP_LISTS)
    items = {item for value, group in lists for item in _in_value(index, value, group)}
    every = tuple(sorted(items, key=lambda item: item.span))
    text = TextIndex(context.name, "setup", index.lines, Content(requirements=every))
    other = TextContext(text, context.version, context.project, context.hardware, context.vocabularies)
    yield from _found(other, [rule], every)


def _in_value(index: ModuleIndex, value: ast.expr, group: str) -> Iterator[Requirement]:
    """The requirements in the lists of which a value is made; each list is a group of its own."""
    for part in made_from(index, value, inside=True):
        text, span, around = string_value(part), index.span(part), index.parent(part)
        if (
            isinstance(around, (ast.List, ast.Tuple))
            and text is not None
            and index.segment(part)[1:-1] == text
        ):
            line, group_of_list = alone_on_line(index.lines, span), f"{group} {index.start(around)}"
            item = requirement_at(text, span[0] + 1, span=span, group=group_of_list, line=line)
            if item is not None:
                yield item


def _found(
    context: TextContext, rules: list[Rule[RequirementOptions]], every: Sequence[Requirement]
) -> Iterator[Match]:
    by_action: dict[str, Rule[RequirementOptions]] = {rule.options.action: rule for rule in rules}
    if context.index.type == "setup" and "version" in by_action:
        by_action["excluded"] = by_action["version"]
    release = recommended(context.version.text)
    own = {each.value for each in context.index.content.settings if each.name in _OWN_NAME}
    for item in every:
        if "rocm" in item.address or item.name in own:
            continue  # for AMD's devices; a package that requires its own extras
        if release and item.name in _FAMILY:
            yield from _versions(context, by_action, item, every, release)
            continue
        for rule in rules:
            known = rule.options.packages
            value = next((known[one] for one in known if fnmatchcase(item.name, one)), None)
            if rule.options.action == "replace" and value in [other.name for other in every]:
                break  # the extra for NPUs has it: the others are for other machines
            if value is not None and rule.options.action == "older":
                # What it pins loosely may be newer.
                loose = not {"^", "~"}.isdisjoint(item.specifier)
                value = None if loose or not limits_hold(f"<{value}", limits_of(item.specifier)) else value
            if value is not None:
                # conda does not take an empty list: it goes with its first item.
                items = [one for one in every if one.group == item.group]
                with_list = _list_of(context.index, rules, items) if items[0] is item else []
                yield _package(context, rule, item, value, with_list)
                break


def _package(
    context: TextContext, rule: Rule[RequirementOptions], item: Requirement, value: str, with_list: list[Edit]
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
        edits = with_list or [Edit(*item.line, "")]
    if action == "replace":
        message = _("{name} needs CUDA; use {value}", name=item.name, value=value)
        value = "" if edits else _("Write {value}.", value=value)
    elif action == "older":
        value = _("Install {name} {value} or newer.", name=item.name, value=value)
    return found_in_text(context, rule, item.span, api=item.name, edits=edits, message=message, advice=value)


def _list_of(index: TextIndex, rules: list[Rule[RequirementOptions]], items: list[Requirement]) -> list[Edit]:
    """The edits that remove a list of pip's in an environment.yml, where none of its items stays."""
    settings, group = index.content.settings, items[0].group
    holder = next((one for one in settings if one.name == group), None)
    if index.type != "yaml" or not group.endswith(".pip") or holder is None:
        return []
    removed = [one for rule in rules if rule.options.action == "remove" for one in rule.options.packages]
    written = [one for one in settings if one.name.rpartition(".")[0] == group]
    gone = [one.line for one in items if one.line and any(fnmatchcase(one.name, each) for each in removed)]
    options = any(one.kind == "option" and one.command is None for one in settings)
    line = index.lines.span(*[index.lines.line_of(holder.name_span[0])] * 2)
    is_alone = index.text_of(line).split("#")[0].strip() == "- pip:"
    if options or len(gone) < max(len(written), len(items)) or not is_alone:
        return []
    return [Edit(*each, "") for each in (line, *gone)]


_ADD = N_("add torch_npu: requirements list {name} but not torch_npu, which the migrated program imports")


def _versions(
    context: TextContext,
    by_action: dict[str, Rule[RequirementOptions]],
    item: Requirement,
    every: Sequence[Requirement],
    release: ReleaseSet,
) -> Iterator[Match]:
    """Torch and what is built for it: the versions that belong together."""
    torch, name = context.version.text, item.name
    version = torch if name in _TORCH else getattr(release, name.replace("-", "_"))
    if not version or not _is_for_linux(item):
        return
    pin = _PIN_OF_POETRY if item.by == "poetry" else _PIN
    fits, pinned = _fits(item, version), bool(pin.match(item.specifier))
    if name == _TORCH_NPU and pinned and _base(item.specifier) == _base(version):
        return  # torch_npu has several releases for one torch, such as 2.7.1 and 2.7.1.post4
    # What the sentences speak of; each takes what it names.
    about = {"name": name, "specifier": item.specifier, "version": version, "torch": torch}
    unclear = item.locked or item.address or item.by == "conda" or fits is None
    rule, advice, severity, edits = by_action.get("excluded"), "", "", list[Edit]()
    if unclear:
        for_cuda = "+cu" in item.specifier or "cu1" in item.address
        fits = fits and not for_cuda and item.by != "conda"
        if fits and (name != "torch" or not item.locked or any(one.name == _TORCH_NPU for one in every)):
            return
        message, severity = _(_ADD, **about) if fits else _why(item, version), "warning"
    elif not fits and not pinned:
        message = _("{name} {specifier} excludes {version}, the release for torch {torch}", **about)
        if name in _TORCH:
            message = _("{name} {specifier} excludes torch {torch}, the target of this migration", **about)
        advice = _("Migrate for a torch version that it allows (-v), or allow {version}.", **about)
        others = (one for one in every if one.name == name and one.group != item.group)
        if _EXTRA.search(item.group) and any(_fits(one, version) for one in others):
            severity = "info"  # an extra for other machines, such as Macs: nobody has to install it
    else:
        rule, severity = by_action.get("version"), "warning"
        # What pip knows as pytorch is no torch; Poetry's entry has its name elsewhere.
        other = name == "pytorch" and item.by == "pip"
        pins = pinned or (name in _TORCH and context.index.type in _INSTALLED)
        edits = [Edit(*item.specifier_span, f"=={version}")] if pins and not (pinned and fits) else []
        if other:
            start = item.span[0] + (context.index.text_of(item.span)[:1] in "\"'")
            edits.insert(0, Edit(start, start + len(name), "torch"))
        about["torch_npu"] = release.torch_npu
        message = _(_ADD, **about)
        if name == _TORCH_NPU:
            message = _("torch_npu {version} is the release for torch {torch}", **about)
        elif not fits:
            message = _("torch_npu {torch_npu} is built for {name} {version}, not for {specifier}", **about)
        elif edits:
            message = _("{name} is not pinned; torch_npu {torch_npu} is built for {version}", **about)
        added = _torch_npu(context, item, every, release.torch_npu) if name == "torch" or other else None
        edits += added or []
        if not edits and added is None:
            return
    if rule is not None:
        said: Said = {"api": name, "edits": edits, "message": message, "advice": advice, "severity": severity}
        yield found_in_text(context, rule, item.span, **said)


def _torch_npu(
    context: TextContext, item: Requirement, every: Sequence[Requirement], version: str
) -> Optional[list[Edit]]:
    """torch_npu beside the first torch for Linux of a list, with the marker of an only one; not twice.

    None where it need not be added; no edits where it has to be, by hand.
    """
    among = [one for one in every if one.name in _TORCH and one.group == item.group and _is_for_linux(one)]
    if among[0] is not item or any(one.name == _TORCH_NPU for one in every):
        return None
    of_command, of_type = item.group.startswith("command"), context.index.type
    exact = of_command or context.index.name.endswith("Pipfile") or of_type in _INSTALLED
    new = f"torch_npu=={version}" if exact else f"torch_npu=={'.'.join(version.split('.')[:3])}.*"
    if item.by == "poetry":
        new = new.replace("_", "-").replace("==", ' = "==', 1) + '"'
    written = context.index.text_of(item.span)
    quote = written[0] if written.startswith(("'", '"')) else ""
    if item.line is None and of_command:
        return _in_command(context.index, item, quote, new)
    marker = f" ; {item.marker}" if item.marker and len(among) == 1 else ""
    quote = "" if item.by == "poetry" else quote
    comma = "," if quote and of_type in ("toml", "setup") else ""
    inside = [Edit(item.span[1], item.span[1], f", {quote}{new}{marker}{quote}")] if comma else []
    if item.line is None:
        return inside  # a list on one line
    start, end = item.line
    line = context.index.text_of(item.line)
    ending = line[len(line.rstrip("\r\n")) :]
    before = "" if item.by == "poetry" else context.index.text_of((start, item.span[0]))
    text = f"{before}{quote}{new}{marker}{quote}{comma}"
    if not ending:  # the last line of a file
        return [Edit(end, end, newline_of(context.index.text_of((0, end))) + text)]
    behind = context.index.data[item.span[1] : end].strip() if comma else b","
    if not behind:  # the last item of a list, without a comma
        return [Edit(item.span[1], item.span[1], f",{ending}{text.rstrip(',')}")]
    return [Edit(end, end, text + ending)] if behind.startswith(b",") else inside


def _in_command(index: TextIndex, item: Requirement, quote: str, new: str) -> list[Edit]:
    """torch_npu in a command that installs torch; in one of its own where that takes torch's index alone.

    Nothing where a quote of the command is left open: what is put behind it would be a part of the string.
    """
    end = item.span[1]
    if index.data[item.span[0] - 1 : item.span[0]] == b'"':  # a word of a list of strings
        return [Edit(end, end, f'", "{new}')]
    command = index.content.commands[int(item.group.rpartition(" ")[2])]
    texts = [word.text or "" for word in command.words]
    if any(text.startswith(ONE_INDEX) for text in texts) and "install" in texts:
        try:
            shlex.split(index.text_of(command.span), comments=True)
        except ValueError:
            return []
        if index.data[command.span[1] :].lstrip(b" \t")[:1] in (b"'", b'"'):
            return []
        start, end = command.words[0].span[0], command.words[texts.index("install")].span[1]
        own = index.text_of((start, end))
        return [Edit(command.span[1], command.span[1], f" && {own} {quote}{new}{quote}")]
    return [Edit(end, end, f" {quote}{new}{quote}")]


def _is_for_linux(item: Requirement) -> bool:
    """Whether a requirement's marker admits a machine with Linux, for some Python."""
    if not item.marker:
        return True
    from packaging.markers import InvalidMarker, Marker, UndefinedEnvironmentName  # as below

    linux = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "extra": ""}
    machines = [{**linux, "platform_machine": processor} for processor in ("aarch64", "x86_64")]
    pythons = [{"python_version": f"3.{n}", "python_full_version": f"3.{n}.9"} for n in range(8, 15)]
    try:
        marker, every = Marker(item.marker), ({**one, **other} for one in machines for other in pythons)
        return "extra" in item.marker or any(map(marker.evaluate, every))
    except (InvalidMarker, UndefinedEnvironmentName):
        return True


def _fits(item: Requirement, version: str) -> Optional[bool]:
    """Whether a requirement admits a version; None where that is unknown."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # who reads rule packs loads this module

    if item.by == "poetry":
        found = re.match(r"(\^|~|==|=|>=)?\s*(\d+(?:\.\d+)*)(?:\+\w+)?\Z", item.specifier)
        if item.specifier == "*":
            return True
        if found is not None:
            sign = {"^": "~=", "~": "~=", "=": "==", None: "=="}.get(found[1], found[1])
            number = ".".join((*found[2].split("."), "0")[:2]) if sign == "~=" else found[2]
            return SpecifierSet(f"{sign}{number}").contains(version)
    try:
        return SpecifierSet(item.specifier).contains(version, prereleases=True)
    except InvalidSpecifier:
        return None


def _base(version: str) -> str:
    """``2.7.1`` of ``==2.7.1.post4``."""
    return version.lstrip("= v").partition(".post")[0]


def _why(item: Requirement, version: str) -> str:
    about = {"name": item.name, "version": version}
    if item.by == "conda":
        said = N_("conda's {name} is built for CUDA or has no torch_npu: install {name} {version} with pip")
        return _(said, **about)
    where = _("from {address}", address=item.address) if item.address else item.specifier
    where = _("with its hashes") if item.locked else where
    where = where if re.search(r"\w", where) else _("of a version that is computed")  # torch==${VERSION}
    return _("{name} {where}: install {version}", **about, where=where)
