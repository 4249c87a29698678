"""The names of a package that a text may mean, read off the text without parsing it.

A quick look that says which lines are worth a walk through their expressions: it may name too much,
because it does not know scopes, and names that are made at run time it misses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain
from typing import Callable, Optional

from migrator.light import Declared

_CHAIN = re.compile(r"[\w.]+")
# Everything but the bytes of dotted names, as blanks: split() then is twice as fast as a pattern.
_BLANKS = bytes(byte if chr(byte).isalnum() or chr(byte) in "_." else 32 for byte in range(128)).ljust(256)
# A line break is put before the text: so each line begins with one.
_IMPORT = re.compile(
    r"[\n;:][ \t]*(?:import[ \t]+([^#;\n]+)"
    r"|from[ \t]+([\w.]+)[ \t]+import[ \t\\\n]*(?:\(([^)]*)\)|((?:[^#;\n\\]|\\\n)+)))"
)
_ALIASED = re.compile(r"=[ \t]*([\w.]+)[ \t]*(?:#.*)?$", re.M)
_TARGET = re.compile(r"[ \t]*(\w+)[ \t]*")
_GETATTR = r"getattr\(\s*([\w.]+)\s*,\s*[\"'](\w+)[\"']"  # strings are compiled where a text needs them
_COMMENT = re.compile(r"#[^\n]*")
_LONG_STRING = r"\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''"
_BEHIND_DOT = re.compile(r"\.(?:[\s\\]+|(?<=\s\.))([^\W\d]\w*)")
_WORD = re.compile(r"\w+")
# Modules under their usual names, whose members are never torch's: json.load, re.compile.
OTHERS = frozenset({"json", "math", "np", "numpy", "os", "pickle", "re", "sys", "yaml"})
# What stands behind a name that is called, or aliased: a call's arguments where they hold no string and no
# comment, so that its brackets are those that are seen; any other call, the end of a string, an alias.
_BEHIND_NAME = re.compile(
    r"[\s\\]*\(([^()'\"#]*(?:\([^()'\"#]*\)[^()'\"#]*)*)\)|[\s\\]*[(\"']|[ \t]+as\b|[ \t\r]*(?:;|#|$)", re.M
)
_INNER = r"\([^()]*\)|\[[^\[\]]*\]"


class Written(Declared):
    """The names of a text as they are written.

    ``dotted`` are those with a dot, such as ``F.relu``; behind a bracket they begin with it: ``.relu``.
    ``words`` are the parts of all. ``handed_on`` are names under which other files hand modules of torch on.
    """

    text: str
    dotted: list[str]
    words: set[str]
    handed_on: frozenset[str] = frozenset()

    @cached_property
    def _behind(self) -> dict[str, list[str]]:
        """By what ``dotted`` names begin with, what stands behind its dot: few begin with something new."""
        found: dict[str, list[str]] = {}
        for root, _, rest in (each.partition(".") for each in self.dotted):
            found.setdefault(root, []).append(rest)
        return found

    @cached_property
    def members(self) -> set[str]:
        """The words that stand right behind a dot, but for those of modules that are surely others."""
        found = set(
            ".".join(chain(*(self._behind[root] for root in self._behind.keys() - OTHERS))).split(".")
        )
        found.discard("")
        return found

    @cached_property
    def apart(self) -> set[str]:
        """The words behind a dot from which blanks, a line's end or a comment keep them apart."""
        text = self.text
        found = _BEHIND_DOT.findall(text)
        return {*found, *(_BEHIND_DOT.findall(_COMMENT.sub("", text)) if "#" in text else ())}

    @cached_property
    def imports(self) -> list[tuple[str, str, str]]:
        """The parts of all import statements, as ``_parts`` has them."""
        return list(_parts(_imports(self.text)))

    @cached_property
    def _imported(self) -> set[str]:
        """The words of all import statements; all words of the text where one binds what it does not name."""
        written = " ".join(part for parts in self.imports for part in parts)
        return self.words if "*" in written else set(_WORD.findall(written))

    @cached_property
    def _of_torch(self) -> set[str]:
        """Those of ``members`` that may be torch's: not of ``self``, nor of what is imported elsewhere."""
        bound: dict[str, bool] = {}
        for name, full in _bound(self.imports):
            named = full.rpartition(".")[2] in self.handed_on or "torch" in full.split(".")
            bound[name] = bound.get(name, False) or full.startswith("torch") or named
        kept = self.handed_on | {"torch"}
        taken: list[str] = []
        for root in self._behind.keys() - OTHERS:
            may_be = bound.get(root, True)
            for rest in self._behind[root]:
                is_own = root in ("self", "cls") and "." not in rest
                if not is_own and (may_be or not kept.isdisjoint(rest.split("."))):
                    taken.append(rest)
        return set(".".join(taken).split("."))

    def may_end_torch(self, word: str) -> bool:
        """The same of a full name of torch, or of what is imported in quotes."""
        return word in self._of_torch or self._stands_apart(word)

    def may_end(self, word: str) -> bool:
        """Whether a full name of something imported may end with a word: ``load`` of ``torch.load``.

        For that it is a member of something, or imported, or in quotes: ``getattr(torch, "load")``.
        """
        return word in self.members or self._stands_apart(word)

    def _stands_apart(self, word: str) -> bool:
        if word in self._imported or word in self.apart:
            return True
        return f'"{word}"' in self.text or f"'{word}'" in self.text

    @cached_property
    def full_names(self) -> dict[str, set[str]]:
        """The full names of things that the text may mean, used or imported, by their packages."""
        roots: dict[str, list[str]] = {}
        for bound, full in _bound(self.imports):
            roots.setdefault(bound, []).append(full)
        text = f"\n{self.text}"
        for match in _ALIASED.finditer(text):
            root, dot, rest = match[1].partition(".")
            if root in roots:
                target = _TARGET.fullmatch(text, text.rindex("\n", 0, match.start()) + 1, match.start())
                if target and target[1] not in roots:
                    roots[target[1]] = [f"{full}{dot}{rest}" for full in roots[root]]
        asked = re.findall(_GETATTR, text) if "getattr" in text else ()
        names = {full for every in roots.values() for full in every}
        for root, _, rest in (".".join(each).partition(".") for each in asked):
            names.update(f"{full}.{rest}" for full in roots.get(root, ()))
        for root in roots.keys() & self._behind.keys():
            rests = {rest.rstrip(".") for rest in self._behind[root]} - {
                ""
            }  # a sentence may end behind a name
            names.update(f"{full}.{rest}" for full in roots[root] for rest in rests)
        found: dict[str, set[str]] = {}
        for name in names:
            found.setdefault(name.partition(".")[0], set()).add(name)
        return found

    @cached_property
    def _modules(self) -> list[str]:
        return [module or name for module, name, _ in self.imports if not module or name == "*"]

    def may_use(self, packages: Iterable[str], fits: Callable[[str], bool], words: Iterable[str]) -> bool:
        """Whether names of some packages, of which a beginning fits, may be used, or a module be imported.

        Any may be where a package is in quotes, or where one of the ``words`` stands apart from its dot.
        """
        used = [name for package in packages for name in self.full_names.get(package, ())]
        parted = [name.split(".") for name in (*used, *self._modules) for word in words if word in name]
        return (
            any(fits(".".join(parts[:end])) for parts in parted for end in range(1, len(parts) + 1))
            or any(f"{mark}{package}" in self.text for package in packages for mark in "\"'")
            or not self.apart.isdisjoint(words)
        )

    def is_given(self, word: str) -> bool:
        """Whether what is called by a word may be given anything: ``parse_args([…])``, not ``main()``."""
        ends = (each.end() for each in re.finditer(rf"{word}(?<!\w{word})\b", self.text))
        calls = (_BEHIND_NAME.match(self.text, end) for end in ends)
        return any(call and (call[1] is None or call[1].strip()) for call in calls)

    def may_import(self, package: str) -> bool:
        """Whether a package may be imported, by a statement or by its name in quotes."""
        return package in self._imported or f'"{package}' in self.text or f"'{package}" in self.text


def read_names(text: str, handed_on: frozenset[str] = frozenset()) -> Written:
    """The names in a text, without a look at what they mean."""
    odd: list[str] = []
    plain = text
    if not text.isascii():  # few lines have other letters
        lines = text.split("\n")
        plain, odd = "\n".join(filter(str.isascii, lines)), [line for line in lines if not line.isascii()]
    found = set(plain.encode("ascii").translate(_BLANKS).split())
    chains = [*b" ".join(found).decode("ascii").split(), *_CHAIN.findall("\n".join(odd))]
    words = set(".".join(chains).split("."))
    words.discard("")
    return Written(text, [each for each in chains if "." in each], words, handed_on)


def may_give(text: str, name: str, keywords: Iterable[str], place: Optional[int] = None) -> bool:
    """Whether a text may give one of some keywords to what is called by a name, or by an alias of it.

    With ``place`` the argument may also be given without its keyword, as the one behind so many others.
    """
    given = "|".join(word for word in keywords if re.search(rf"{word}(?<!\w{word})\s*=(?!=)", text))
    found = text.find(name) if given or place is not None else -1
    while found >= 0:
        behind = _BEHIND_NAME.match(text, found + len(name))
        arguments = behind[1] if behind else ""
        if arguments is None or (given and re.search(rf"\b(?:{given})\s*=", arguments)):
            return True
        if behind and place is not None:
            if "*" in arguments or re.sub(_INNER, "", arguments).count(",") >= place:
                return True
        found = text.find(name, found + 1)
    return False


def names_in(written: Written, package: str) -> set[str]:
    """The full names of things in ``package`` that a text may mean: used, or imported."""
    return {name for name in written.full_names.get(package, ()) if "." in name}


def _imports(text: str) -> Iterator[tuple[str, str, str, str]]:
    """The parts of each import statement. To look for the word first is thrice as fast as the pattern."""
    text = "\n" + (text.replace("\r", "\n") if "\r" in text else text)
    place = text.find("import")
    while place >= 0:
        line = text.rfind("\n", 0, place)
        start = max(line, text.rfind(";", line, place), text.rfind(":", line, place))
        match = _IMPORT.match(text, start)
        if match:
            yield match[1] or "", match[2] or "", match[3] or "", match[4] or ""
        place = text.find("import", max(place + 6, match.end() if match else 0))


def imported_names(text: str) -> Iterator[tuple[str, str]]:
    """Each name that an import binds, with the full name that it stands for, which may begin with dots."""
    return _bound(_parts(_imports(text)))


def imported_places(text: str) -> Optional[list[tuple[str, str]]]:
    """The module of each name that a text imports, and the name in it, which is empty for a whole module.

    None where a string over several lines may hold some of the imports: a tree tells them apart.
    """
    imports = list(_imports(text))
    held = re.findall(_LONG_STRING, text) if "'''" in text else text.split('"""')[1::2]
    if any("import" in each for each in held):
        if len(imports) != len(list(_imports(re.sub(_LONG_STRING, "", text)))):
            return None
    return [
        (module or name, "" if name == "*" or not module else name)
        for module, named, _ in _parts(imports)
        if (name := named.partition(" ")[0])
    ]


def _parts(imports: Iterable[tuple[str, str, str, str]]) -> Iterator[tuple[str, str, str]]:
    """The module, if there is one, the name and the alias of each part of some import statements."""
    for plain, module, in_brackets, listed in imports:
        for part in (plain or _COMMENT.sub("", in_brackets or listed)).replace("\\", " ").split(","):
            name, _, alias = part.strip().partition(" as ")
            yield module, name.strip(), alias.strip()


def _bound(parts: Iterable[tuple[str, str, str]]) -> Iterator[tuple[str, str]]:
    for module, name, alias in parts:
        if module and name not in ("", "*"):
            yield alias or name, f"{module}{'' if module.endswith('.') else '.'}{name}"
        elif not module and (root := name.partition(".")[0]):  # a text may say "import ."
            yield (alias, name) if alias else (root, root)
