"""Kind ``body``: text of another language in a script, such as Python in a here-document."""

from __future__ import annotations

import re
from collections.abc import Iterator

from migrator.matchers.context import Match
from migrator.matchers.options import Options
from migrator.matchers.other_context import TextContext, found_in_text
from migrator.matchers.packs import Rule


def find(context: TextContext, rules: list[Rule[Options]]) -> Iterator[Match]:
    """The first place in each such text at which a word of a rule stands; it is not migrated."""
    index = context.index
    for rule in rules:
        word = re.compile(rb"\b(?:%s)\b" % b"|".join(each.encode("utf-8") for each in rule.match))
        for start, end in index.content.bodies:
            found = word.search(index.data, start, end)
            if found is not None:
                api = found.group().decode("utf-8")
                yield found_in_text(context, rule, found.span(), api=api)
