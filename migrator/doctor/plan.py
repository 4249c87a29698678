"""What to install so that wishes such as ``torch 2.8, vllm-ascend`` are met, by the tables of releases."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional

from migrator.api_support import companions as known
from migrator.api_support.companions import Companion, ReleaseSet, order
from migrator.data_folders import reports_yaml
from migrator.language import N_, MessageError, _, did_you_mean

_WISH = re.compile(r"([A-Za-z][\w.-]*?)\s*(?:==?)?\s*(?:v?(\d\S*))?")
_ARCHITECTURES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
_OF_RELEASE = ("torch", "torch_npu", "torchvision", "torchaudio")
_OF_MACHINE = {"python": "Python", "cann": "CANN", "driver": "Ascend HDK"}
_PYTHON = "3.11"  # that of most images and guides
_MOST = 8
_AS_WISHED, _NEAREST, _LEFT_OUT = range(3)


class _Wish(NamedTuple):
    """A package or part of the machine, with a version or without: 2.8 is any 2.8. ``how`` it is met."""

    name: str
    version: str
    how: int = _AS_WISHED

    def fits(self, version: str) -> bool:
        right = re.match(rf"{re.escape(self.version)}(?!\d)", version, re.IGNORECASE)
        return not self.version or self.how != _AS_WISHED or right is not None

    def distance(self, version: str) -> int:
        have, wanted = (order(each or "999")[0] for each in (version, self.version))
        return abs(sum((one - other) * by for one, other, by in zip(have, wanted, (10**6, 10**3, 1))))


class _Choice(NamedTuple):
    """What goes together. ``pythons`` are all that would do, ``works`` the drivers that CANN works with."""

    release: ReleaseSet
    rows: dict[str, Companion]
    cann: str
    python: str
    pythons: Sequence[str]
    driver: str
    works: Sequence[str]

    def version(self, name: str) -> str:
        if name in self.rows:
            return self.rows[name].version
        return str(getattr(self.release if name in _OF_RELEASE else self, name, ""))  # it may be left out


def make_plan(text: str, arch: str, set_env: str) -> dict[str, Any]:
    """What meets wishes on a machine of that architecture, whose CANN has the script ``set_env``.

    ``unmet``: wishes that are not met, what is nearest, and why; ``parts``: each ``name``, ``version`` and
    ``why``; ``steps``: each ``title`` with ``notes`` and ``lines`` for a shell, commands and comments;
    ``images`` to take instead of most steps. Raises MessageError for what is not a list of wishes.
    """
    wishes, arch = _read(text, arch)
    most = [_LEFT_OUT if wish.name not in (*_OF_RELEASE, *_OF_MACHINE) else _NEAREST for wish in wishes]
    ways = itertools.product(*(range(each + 1) for each in most))
    for way in sorted(ways, key=lambda way: (way.count(_LEFT_OUT), sum(way), way)):
        relaxed = [wish._replace(how=how) for wish, how in zip(wishes, way)]
        found = list(_choices(relaxed))
        if found:
            return _written(max(found, key=lambda one: _rank(one, relaxed)), relaxed, arch, set_env)
    raise MessageError("no releases are known")  # the tables are empty


def _read(text: str, arch: str) -> tuple[list[_Wish], str]:
    texts = reports_yaml("doctor_plan.yaml")
    entries = {**{name: {} for name in _OF_RELEASE}, **texts["before"], **texts["packages"]}
    names = {also: name for name, each in entries.items() for also in (name, *each.get("also", ()))}
    names |= {also.replace("_", "-"): name for also, name in names.items()}
    wishes: dict[str, _Wish] = {}
    for word in filter(None, map(str.strip, text.split(","))):
        match = _WISH.fullmatch(word)
        if word.lower() in _ARCHITECTURES:
            arch = _ARCHITECTURES[word.lower()]
            continue
        if match is None:
            said = N_("{word!r} is not a requirement such as 'torch 2.8' or 'vllm-ascend'")
            raise MessageError(said, word=word)
        called = match[1].lower()
        name = names.get(called.replace("_", "-"), "")
        if not name:
            said = N_("the release tables do not contain {name} (they contain {known}){hint}")
            hint = did_you_mean(called, names)
            raise MessageError(said, name=match[1], hint=hint, known=", ".join(entries))
        if name in wishes:
            raise MessageError("{name} is given twice", name=name)
        wishes[name] = _Wish(name, match[2] or "")
    if not wishes or len(wishes) > _MOST:
        raise MessageError("give 1 to {most} requirements: 'torch 2.8, vllm-ascend'", most=_MOST)
    return list(wishes.values()), arch


def _choices(wishes: Sequence[_Wish]) -> Iterator[_Choice]:
    """All that goes together and is as wished."""
    of_machine = {wish.name: wish for wish in wishes if wish.name in _OF_MACHINE and wish.version}
    packages = [wish for wish in wishes if wish.name not in (*_OF_RELEASE, *_OF_MACHINE)]
    packages = [wish for wish in packages if wish.how != _LEFT_OUT]
    for release in known.release_sets():
        if all(wish.fits(getattr(release, wish.name)) for wish in wishes if wish.name in _OF_RELEASE):
            rows = [row for row in known.companions() if row.goes_with(release)]
            of_each = [
                [row for row in rows if row.package == wish.name and wish.fits(row.version)]
                for wish in packages
            ]
            for chosen in itertools.product(*of_each):
                choice = _together(release, chosen, of_machine)
                if choice is not None:
                    yield choice


def _together(
    release: ReleaseSet, rows: Sequence[Companion], wishes: Mapping[str, _Wish]
) -> Optional[_Choice]:
    """The packages with what they need, where all have a CANN and a Python in common."""
    chosen = {row.package: row for row in rows}
    for row in known.companions():
        if any(one.needed.get(row.package) == row.version for one in rows):
            chosen.setdefault(row.package, row)
    every = list(chosen.values())
    if any(one.needed.get(row.package, row.version) != row.version for one in every for row in every):
        return None
    lists = [row.cann for row in every if row.cann] or [(release.cann,)]
    common = [one for one in lists[0] if all(one in others for others in lists)]
    # A package that names its torch_npu has been tried with another CANN, too.
    if release.cann and release.cann not in common and not any(row.torch_npu for row in every):
        return None
    cann = release.cann if release.cann in common else next(iter(common), "")
    lists = [one for one in (release.python, *(row.python for row in every)) if one]
    pythons = [one for one in lists[0] if all(one in others for others in lists)] if lists else []
    python = _PYTHON if _PYTHON in pythons else max(pythons, key=order, default="")
    if "python" in wishes and pythons:
        python = min(pythons, key=wishes["python"].distance)
    driver, *works = known.drivers().get(cann, ("",))
    if "driver" in wishes:
        driver = next(filter(wishes["driver"].fits, (driver, *works)), "")
    choice = _Choice(release, chosen, cann, python, pythons, driver, works or [driver])
    fits = all(wish.fits(choice.version(name)) for name, wish in wishes.items())
    return choice if fits and common and (python or not lists) else None


def _rank(choice: _Choice, wishes: Sequence[_Wish]) -> tuple[Any, ...]:
    """What makes a choice better: no release candidate, near to wishes, a known CANN, newer packages."""
    inexact = [wish for wish in wishes if wish.how == _NEAREST and wish.version]
    far = sum(wish.distance(choice.version(wish.name)) for wish in inexact)
    versions = [row.version for row in choice.rows.values()]
    candidates = sum("rc" in version for version in (choice.release.torch_npu, *versions))
    newer = [*map(order, versions)], order(choice.release.torch_npu)
    return -candidates, -far, bool(choice.release.cann), *newer


def _written(choice: _Choice, wishes: Sequence[_Wish], arch: str, set_env: str) -> dict[str, Any]:
    texts, rows, release = reports_yaml("doctor_plan.yaml"), choice.rows, choice.release
    audio = ["torchaudio"] if any(wish.name == "torchaudio" for wish in wishes) else []
    pip = [name for name in ("torch", "torchvision", *audio) if choice.version(name)]
    names = [*rows, "torch_npu", *pip, *_OF_MACHINE]
    values = {name: choice.version(name) or "<version>" for name in names}
    values |= {"pythons": ", ".join(choice.pythons), "works": ", ".join(choice.works)}
    values |= {"arch": arch, "set_env": set_env, "numpy": texts["numpy"].get(choice.python, "numpy")}
    values["torch_packages"] = " ".join(f"{name}=={choice.version(name)}" for name in pip)
    exact = [wish.name for wish in wishes if wish.version and wish.how == _AS_WISHED]

    def part(name: str) -> dict[str, str]:
        version, source = choice.version(name), rows[name].source if name in rows else ""
        by = [row for row in rows.values() if name in row.needed]
        if name in ("torch", "torch_npu", "cann"):
            by = [row for row in rows.values() if version in getattr(row, name)]
        key = "wished" if name in exact and name != "driver" else "named" if by else name
        key = "unknown" if not version and name in _OF_MACHINE else key if key in texts["why"] else "package"
        named = f"{by[0].package} {by[0].version}" if by else ""
        why = _(texts["why"][key]).format(**values, named=named, source=source)
        return {"name": _OF_MACHINE.get(name, name), "version": version, "why": why}

    own = [row for row in known.companions() if row.package == "torch_npu" and row.goes_with(release)]
    images = [row.image for row in rows.values() if row.image]
    images = images or [row.image for row in own if choice.cann in row.cann]
    return {
        "arch": arch,
        "unmet": list(_unmet(choice, wishes)),
        "parts": [part(name) for name in names],
        "steps": list(_steps(choice, values)),
        "images": [one for one in images if not re.search(rf"-(?!{arch})(x86_64|aarch64)\Z", one)],
    }


def _steps(choice: _Choice, values: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    texts, rows = reports_yaml("doctor_plan.yaml"), choice.rows
    # What others need goes first: mindspeed before mindspeed-llm.
    names = sorted(rows, key=lambda name: not any(name in row.needed for row in rows.values()))
    entries = {**texts["before"], **{name: texts["packages"][name] for name in names}}
    brought = {each for entry in entries.values() for each in entry.get("brings", ())}
    for name, entry in entries.items():
        if name in brought:
            continue
        more = {**values, "version": choice.version(name)}
        if name in rows:
            more["index"] = "".join(f" --extra-index-url {one}" for one in rows[name].indexes)
            more |= {need.replace("-", "_"): version for need, version in rows[name].needed.items()}
        title = _(entry["title"]) if "title" in entry else f"{_OF_MACHINE.get(name, name)} {{version}}"
        title, *lines = (line.format(**more).strip() for line in (title, *entry["lines"]))
        yield {"title": title, "notes": [*map(_, entry.get("notes", ()))], "lines": lines}


def _unmet(choice: _Choice, wishes: Sequence[_Wish]) -> Iterator[str]:
    """Which wishes are not met, and what is nearest; then what the packages that are wished go with."""
    for wish in wishes:
        name = _OF_MACHINE.get(wish.name, wish.name)
        values = {"wish": f"{name} {wish.version}".strip(), "nearest": f"{name} {choice.version(wish.name)}"}
        if wish.how == _NEAREST:
            yield _("{wish} is not available; the nearest is {nearest}", **values)
        elif wish.how == _LEFT_OUT and any(row.package == wish.name for row in known.companions()):
            yield _("{wish} does not fit the other packages and is left out", **values)
        elif wish.how == _LEFT_OUT:
            where = reports_yaml("doctor_plan.yaml")["packages"][wish.name]["where"]
            yield _(
                "{wish} is left out: its releases are not published as a table ({where})",
                where=where,
                **values,
            )
    for wish in wishes if any(wish.how for wish in wishes) else ():
        exact, rows = wish._replace(how=_AS_WISHED), [*choice.rows.values()]
        rows += [row for row in known.companions() if wish.version and exact.fits(row.version)]
        for row in [row for row in rows if row.package == wish.name][-1:]:
            parts = (("torch", row.torch), ("CANN", row.cann), ("Python", row.python))
            goes = "; ".join(f"{name} {', '.join(versions)}" for name, versions in parts if versions)
            if goes:
                yield _("{package} requires {goes}", package=f"{row.package} {row.version}", goes=goes)
