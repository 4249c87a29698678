"""Rules that say ``on`` what, ``where`` and ``do``: what they ask and write, and what is wrong with them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from migrator.core.rules import Rules
from migrator.core.settings import Settings
from migrator.findings.edits import apply
from migrator.findings.finding import Finding
from migrator.matchers.packs import RuleError, load, load_all
from migrator.matchers.query import actions, conditions
from migrator.matchers.query.parsing import functions
from migrator.project.facts import scan_file
from migrator.project.project import merge_facts
from tests.checking import every_rule, inspect_text, load_pack

HEAD = "- code: ACME101\n  name: acme\n  summary: acme is another way\n"


def pack_of(tmp_path: Path, body: str) -> Path:
    """A pack with one rule, whose body begins on line 4."""
    pack = tmp_path / "rules.yaml"
    pack.write_text(HEAD + textwrap.indent(textwrap.dedent(body).strip("\n"), "  ") + "\n", encoding="utf-8")
    return pack


def findings(tmp_path: Path, body: str, text: str) -> list[Finding]:
    """What the rule finds in a text."""
    settings = Settings(version="2.6", select=("ACME",), rule_files=(str(pack_of(tmp_path, body)),))
    rules = Rules(settings, load_pack)
    project = merge_facts([scan_file("a.py", text)])
    return [*inspect_text(rules, "a.py", text, project).findings]


def fixed(tmp_path: Path, body: str, text: str) -> str:
    """The text with the fix of the rule's one finding."""
    (finding,) = findings(tmp_path, body, text)
    assert finding.fix is not None
    return apply(text.encode(), finding.fix.edits).decode()


@pytest.mark.parametrize(
    ("where", "holds", "fails"),
    [
        ("given('y')", ["acme.f(1, 2)", "acme.f(y=None)"], ["acme.f(1)", "acme.f(*a, 2)", "acme.f(**k)"]),
        ("missing('y')", ["acme.f(1)", "acme.f(z=2)"], ["acme.f(1, 2)", "acme.f(*a)", "acme.f(**k)"]),
        ("by_keyword('y')", ["acme.f(y=2)"], ["acme.f(1, 2)"]),
        ("given('z')", ["acme.f(z=2)"], ["acme.f(1, 2, 3)"]),
        ("unpacks()", ["acme.f(*a)", "acme.f(**k)"], ["acme.f(1)"]),
        ("declared()", ["acme.f(1, 2, z=3)"], ["acme.f(1, 2, 3)", "acme.f(w=1)", "acme.f(**k)"]),
        ("off('x')", ["acme.f()", "acme.f(None)", "acme.f(x=False)"], ["acme.f(True)", "acme.f(a)"]),
        ("value('x', 1, 'a')", ["acme.f(1)", "acme.f(x='a')"], ["acme.f(True)", "acme.f(1.0)", "acme.f(a)"]),
        ("takes('acme.g')", ["acme.f(1, w=acme.g)"], ["acme.f(1)"]),
        (
            "result_on_cpu()",
            ["acme.f(x.cpu())", "acme.f(device='cpu')"],
            ["acme.f()", "acme.f(device='cuda')"],
        ),
        ("takes('--a')", ["acme.f(1, '--a')"], ["acme.f(1, '--b')"]),
        ("literal('x', 'list', 'tuple')", ["acme.f([1])", "acme.f((1, 2))"], ["acme.f({1})", "acme.f(a)"]),
        ("longer('x', 1)", ["acme.f([1, 2])"], ["acme.f([1])", "acme.f([*a, 2])", "acme.f(a)"]),
        ("literal('x', 'dict')", ["acme.f({})"], ["acme.f([])"]),
        ("has_key('x', 'k')", ["acme.f({'k': 1})"], ["acme.f({'j': 'k'})", "acme.f({**k})", "acme.f('k')"]),
        ("written('x', '[]', '{}')", ["acme.f([])", "acme.f({})"], ["acme.f([1])", "acme.f(a)"]),
        ("written('x', '_[:1]')", ["acme.f(a[:1])"], ["acme.f(a[:2])", "acme.f(a[0:1])", "acme.f(a[1])"]),
        ("literal('x', 'int')", ["acme.f(1)", "acme.f(-1)"], ["acme.f(1.0)", "acme.f(True)", "acme.f(a)"]),
        (
            "computed_by('x', 'b.')",
            ["import b\nc = b.d()\nacme.f(int(c * 2))", "import b\nacme.f((b.d(), 1))"],
            ["acme.f(b)"],
        ),
        ("device('x', 'cuda')", ["acme.f('cuda:0')", "acme.f(f'cuda:{i}')"], ["acme.f('cpu')", "acme.f(a)"]),
        ("computed_into('slice')", ["a[: acme.f() + 1]", "a[int(acme.f()) :]"], ["a[acme.f()]", "acme.f()"]),
        (
            "builds_name('acme')",
            ["globals()[f'x_{acme.f()}']", "__import__('x.' + acme.f())"],
            ["{}[f'x_{acme.f()}']", "f'x_{acme.f()}'"],
        ),
        (
            "computed_into('g')",
            ["g(acme.f())", "x.g(1, (acme.f() * 2, 3))"],
            ["g(x=acme.f())", "h(acme.f())"],
        ),
        ("written('x', '_.g(...)')", ["acme.f(a.g())"], ["acme.f(a.g)"]),
        ("source('x', r'[a-c]+')", ["acme.f(ab)", "acme.f(x=c)"], ["acme.f(abd)", "acme.f()"]),
        (
            "written('x', 'acme.g(_, k=1)', '_.b(...)')",
            ["acme.f(acme.g(2, k=1))", "acme.f(a.b())", "acme.f(a.b(1, c=2))"],
            ["acme.f(acme.g(2))", "acme.f(acme.g(2, k=True))", "acme.f(a.b(*c))", "a = acme.f(a)"],
        ),
        ("written('x', 'X - X')", ["acme.f(a.b - a.b)"], ["acme.f(a - b)", "acme.f(a + a)"]),
        ("written('x', 'X.a()') and value('X', 1)", ["acme.f((1).a())"], ["acme.f((2).a())"]),
        (
            "like('x', 'iter(_)')",
            ["a = iter(b)\nacme.f(a)", "a = iter(b)\na = iter(c)\nacme.f(a)"],
            [
                "a = iter(b)\na = c\nacme.f(a)",
                "def g(a):\n    acme.f(a)",
                "iter = d\nacme.f(iter(b))",
                "a = a\nacme.f(a)",
            ],
        ),
        (
            "like('x', 'iter(_)', '_.b()')",
            ["a = iter(c)\na = c.b()\nacme.f(a)"],
            ["a = iter(c)\na = c.d()\nacme.f(a)"],
        ),
        ("may_be_like('x', 'iter(_)')", ["a = iter(b)\na = c\nacme.f(a)"], ["a = c\nacme.f(a)"]),
        ("like_behind('t u', 'x', '_.eq(_)')", ["a = b.eq(c).t()\nacme.f(a.u(1))"], ["acme.f(b.eq(c).v())"]),
        (
            "kind('x', 'module', 'class')",
            ["import torch\nacme.f(torch.nn.Linear(2, 2))", "class A:\n    pass\nacme.f(A())"],
            ["import torch\nacme.f(torch.ones(2))", "acme.f(a)"],
        ),
        (
            "guarded('k', 'TypeError')",
            ["try:\n    acme.f(k=1)\nexcept TypeError:\n    pass"],
            ["acme.f(k=1)"],
        ),
        ("dotted()", ["acme.f()"], ["from acme import f\nf()"]),
        ("taken('unused', 'text')", ["acme.f()", "print(f'{acme.f()}')"], ["a = acme.f()"]),
        ("has_alternative()", ["a = acme.f() or 1"], ["a = 1 or acme.f()", "a = acme.f() and 1"]),
        ("assigned()", ["a = acme.f()", "a.b = acme.f()"], ["a, b = acme.f()", "acme.f()"]),
        ("followed_by('K')", ["a = acme.f()\na.K = 1"], ["a = acme.f()\nb.K = 1", "acme.f()"]),
        (
            "runs_under('ctx')",
            ["def g():\n    acme.f()\nwith ctx():\n    g()", "@ctx()\ndef g():\n    acme.f()"],
            ["with ctx():\n    with ctx(enabled=False):\n        acme.f()", "with other():\n    acme.f()"],
        ),
        ("called_like('x', 'train', 'val')", ["train = acme.f(val)"], ["val = acme.f(train)"]),
        ("file_has('needle')", ["acme.f()  # needle"], ["acme.f()"]),
        ("api('f')", ["acme.f()"], []),
        ("api('g')", [], ["acme.f()"]),
        ("off('x') and (off('y') or not off('z'))", ["acme.f(y=1, z=1)"], ["acme.f(1)", "acme.f(y=1)"]),
    ],
)
def test_conditions(tmp_path, where, holds, fails):
    every = ["x", "y", "*", "z"]
    last = max((every.index(name) for name in "xyz" if f"'{name}'" in where), default=-1)
    args = every if "declared" in where else every[: last + 1]
    body = f"on: call\nmatch: acme.f\nargs: {args}\nwhere: >-\n  {where}"
    for call in holds:
        assert findings(tmp_path, body, f"import acme\n{call}\n"), call
    for call in fails:
        assert not findings(tmp_path, body, f"import acme\n{call}\n"), call


@pytest.mark.parametrize(
    ("do", "before", "after"),
    [
        ("instead('x', 'w=not {x}')", "acme.f(x=1, y=2)", "acme.f(w=not 1, y=2)"),
        ("drop('x', 'y')", "acme.f(1, 2, z=3)", "acme.f(z=3)"),
        ("rename('acme.g')", "acme.f(1)", "acme.g(1)"),
        ("rename_last('g')", "acme.f(1)", "acme.g(1)"),
        ("put('y', '3')", "acme.f(1)", "acme.f(1, y=3)"),
        ("put('y', '3')", "acme.f(1, 2)", "acme.f(1, 3)"),
        ("put('x', 'str({})')", "acme.f(a if b else c)", "acme.f(str(a if b else c))"),
        ("put('x', '{()} + 1')", "acme.f(a if b else c)", "acme.f((a if b else c) + 1)"),
        ("put('x', '{()} + 1')", "acme.f(a)", "acme.f(a + 1)"),
        ("put('x', '{y}')", "acme.f(1, y=2)", "acme.f(2, y=2)"),
        ("append('3')", "acme.f(1,)", "acme.f(1, 3,)"),
        ("first('0')", "acme.f((1), 2)", "acme.f(0, (1), 2)"),
        ("first('0')", "acme.f()", "acme.f(0)"),
        ("another('--a', '--b')", "acme.f('--a', 1)", "acme.f('--a', '--b', 1)"),
        ("keyword('x', 'w')", "acme.f(x=1)", "acme.f(w=1)"),
        ("keyword('x', 'w')", "acme.f(1)", "acme.f(w=1)"),
        ("positional('x')", "acme.f(x = 1, y=2)", "acme.f(1, y=2)"),
        ("cut('x', 1)", "acme.f([1, 2, 3])", "acme.f([1])"),
        ("cut('x', 1)", "acme.f((1, 2))", "acme.f((1,))"),
        ("entry('x', '1: 2')", "acme.f({ 3: 4})", "acme.f({ 1: 2, 3: 4})"),
        ("replace('g({})')", "acme.f(1)", "g(acme.f(1))"),
        ("replace('{name}')", "acme.f(1)", "f"),
        ("insert('{target}.k = 1')", "a = acme.f(1)", "a = acme.f(1)\na.k = 1"),
        ("ensure_import('os') + put('x', 'os.name')", "acme.f(1)", "import os\nacme.f(os.name)"),
        ("rename_last('g') + put('y', '2')", "acme.f(1)", "acme.g(1, y=2)"),
    ],
)
def test_actions(tmp_path, do, before, after):
    args = ["x", "y"] if "y'" in do or "{y}" in do else ["x"] if "x'" in do else []
    body = f"on: call\nmatch: acme.f\nargs: {args}\nfix: safe\noptions: {{needs_npu: false}}\ndo: >-\n  {do}"
    assert fixed(tmp_path, body, f"import acme\n{before}\n") == f"import acme\n{after}\n"


def test_an_import_is_put_above_those_of_the_library(tmp_path):
    body = "on: call\nmatch: acme.f\nfix: safe\noptions: {needs_npu: false}\ndo: import_above('b.c')"
    before = "import re\nfrom acme.d import e\nimport acme\nacme.f(1)\n"
    assert fixed(tmp_path, body, before) == before.replace("from", "import b.c\nfrom")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a.g(1, x=acme.f)", "a.g(1)"),
        ("a.g(x=acme.f)", "a.g(x=acme.h)"),
        ("a.g(1, x=acme.f if b else c)", "a.g(1, x=acme.h if b else c)"),
    ],
)
def test_a_name_is_left_out_of_a_call(tmp_path, before, after):
    body = "on: name\nmatch: acme.f\nfix: safe\noptions: {needs_npu: false}\ndo: leave_out('h')"
    assert fixed(tmp_path, body, f"import acme\n{before}\n") == f"import acme\n{after}\n"


@pytest.mark.parametrize(
    ("do", "before"),
    [
        ("rename_last('g')", "from acme import f as h\nh(1)\n"),
        ("positional('x')", "import acme\nacme.f(y=2, x=1)\n"),
        ("insert('pass')", "import acme\nprint(acme.f(1))\n"),
        ("ensure_import('os')", "import acme\nos = 1\nacme.f(1)\n"),
        ("import_above('os')", "def g():\n    import acme\n    acme.f(1)\n"),
        ("import_above('os')", "os = 1\nimport acme\nacme.f(1)\n"),
    ],
)
def test_an_action_that_cannot_be_made_is_reported(tmp_path, do, before):
    args = ["x"] if "'x'" in do else []
    body = f"on: call\nmatch: acme.f\nargs: {args}\nfix: safe\ndo: {do} + rename('g')"
    (finding,) = findings(tmp_path, body, before)
    assert finding.fix is None


def problem(tmp_path: Path, body: str) -> tuple[int, str]:
    pack = pack_of(tmp_path, body)
    with pytest.raises(RuleError) as error:
        load(pack)
    line, _, text = str(error.value).removeprefix(f"{pack}:").partition(": ")
    return int(line), text


@pytest.mark.parametrize(
    ("more", "line", "message"),
    [
        ("where: givn('x') and off('y')", 7, "unknown condition 'givn'; did you mean 'given'?"),
        ("where: given('z')", 7, "'args' does not declare 'z'"),
        ("where: given(1)", 7, "given: 1 is not of type Argument"),
        ("where: given('x', 'y')", 7, "given takes 1 arguments, not 2"),
        ("where: longer('x', '1')", 7, "longer: '1' is not of type int"),
        ("where: value()", 7, "value takes 2 arguments, not 0"),
        ("where: called_like('x', '(a+)+', 'b') and off('y')", 7, "'called_like': the regular expression"),
        ("where: given('x') and", 7, "column 15: invalid syntax"),
        ("where: x == 1", 7, "column 1: 'x == 1' is not a condition or an action"),
        ("where: given('x') and y", 7, "column 16: 'y' is not a condition"),
        ("where: given(x)", 7, "column 7: 'x' is not a condition"),
        ("where: given(name='x')", 7, "column 1: \"given(name='x')\" is not a condition"),
        ("where: __import__('os')", 7, "unknown condition '__import__'"),
        ("where: '(lambda: 1)()'", 7, "column 1: "),
        ("where: given('x')", 6, "the argument 'y' is not used"),
        ("where: off('y')\ndo: ptu('x', '1')\nfix: safe", 8, "unknown action 'ptu'; did you mean 'put'?"),
        ("where: off('y')\ndo: put('x', '1')", 8, "'do' needs a fix that is safe or unsafe"),
        ("where: off('y')\nfix: safe", 8, "no case has 'do', so there is no fix"),
        ("do: [1]\nfix: safe", 7, "'do' is a string, not 1"),
        ("do: put('x', '1') + 2\nfix: safe", 7, "column 17: '2' is not a condition"),
        (
            "cases:\n  - {}\n  - where: off('y')",
            8,
            "cases after this one are never reached: it has no 'where'",
        ),
        ("cases:\n  - where: off('y')\n    skip: true", 8, "'skip' in the last case has no effect"),
        (
            "cases:\n  - where: off('y')\n    skip: true\n    message: m\n  - {}",
            10,
            "'message' has no effect",
        ),
        ("cases:\n  - wher: off('y')", 8, "unknown option 'wher'; did you mean 'where'?"),
        ("cases:\n  - severity: 1", 8, "'severity' is one of "),
        ("cases:\n  - at: z", 8, "'args' does not declare 'z'"),
        ("cases:\n  - where: off('y')\n    do: ''", 9, "column 1: "),
        ("fix: safe\ndo: put('y', '1')\ncases: [{}]", 8, "each case has its own 'do'"),
        ("where: written('y', 'a b')", 7, "'a b' is not an expression: invalid syntax"),
        ("where: given('x') and value('X', 1)", 7, "'args' does not declare 'X'"),
        ("once: always", 7, "'once' is one of '', 'function', 'file', not 'always'"),
        ("where: off('y')\nreplace: acme.g", 8, "a rule with 'on' does not use the field 'replace'"),
        ("kind: name", 4, "a rule has either 'on' or 'kind'"),
    ],
)
def test_what_is_wrong_is_an_error_at_its_line(tmp_path, more, line, message):
    at, text = problem(tmp_path, "on: call\nmatch: acme.f\nargs: [x, y]\n" + more)
    assert text.startswith(message)
    assert at == line or more == "kind: name"


FIELDS = ["args: [x]", "where: off('x')", "do: rename('x')", "cases: [{}]", "once: file"]


@pytest.mark.parametrize("field", FIELDS)
def test_a_kind_does_not_look_at_what_queries_have(tmp_path, field):
    name = field.partition(":")[0]
    at, text = problem(tmp_path, f"kind: import\nmatch: acme\n{field}")
    assert (at, text) == (6, f"the kind 'import' does not use the field {name!r}")


def test_a_condition_on_arguments_needs_a_call(tmp_path):
    at, text = problem(tmp_path, "on: [call, name]\nmatch: acme.f\nargs: [x]\nwhere: off('x')")
    assert (at, text) == (7, "off needs a call, and the rule is on call, name")


def test_every_rule_of_ours_can_be_used():
    """They are not looked at where they are loaded."""
    queries = [rule for rule in load_all(named=("NPU", "MSFT")) if rule.on]
    assert len(queries) > 60
    for rule in queries:
        assert rule.plan.cases


def test_every_condition_and_action_serves_a_rule():
    rules = [rule for rule in every_rule() if rule.on]
    written = " ".join(str((rule.where, rule.do, rule.cases)) for rule in rules)
    for module in (conditions, actions):
        assert {name for name in functions(module) if f"{name}(" not in written} == set()


@pytest.mark.parametrize("page", ["rule_format.md", "rule_format.zh.md"])
def test_the_documents_name_every_condition_and_action(page):
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    for module in (conditions, actions):
        assert {name for name in functions(module) if f"`{name}(" not in text} == set()


def test_what_a_rule_is_on(tmp_path):
    text = (
        "import acme\nclass A(acme.f): pass\n@acme.f\ndef g(): acme.f(1)\n@acme.f(1)\ndef h(): pass\nacme.f\n"
    )
    for on, lines in (
        ("base", [2]),
        ("decorator", [3]),
        ("call", [4, 5]),
        ("name", [2, 3, 4, 5, 7]),
        ("[base, call]", [2, 4, 5]),
    ):
        assert [each.line for each in findings(tmp_path, f"on: {on}\nmatch: acme.f", text)] == lines, on
    members = "a.f\na.f()\na.f = 1\nb = a.f.g\n"
    assert [each.line for each in findings(tmp_path, "on: member\nmatch: .f", members)] == [1, 2, 4]


EXPRESSION = """
on: expression
match: [1 - X, 'acme.f(X, ...)']
words: [b, f]
cases:
  - do: replace('~{X}')
    api: '{X}'
fix: safe
"""


@pytest.mark.parametrize(
    ("before", "after", "api"),
    [
        ("a = acme.b()\nc = 1 - (a)", "a = acme.b()\nc = ~a", "a"),
        ("c = 2 * acme.f(a or b, 3)", "c = 2 * ~(a or b)", "a or b"),
    ],
)
def test_an_expression_is_found_by_its_shape(tmp_path, before, after, api):
    text = f"import acme\n{before}\n"
    (finding,) = findings(tmp_path, EXPRESSION, text)
    assert finding.api == api
    assert fixed(tmp_path, EXPRESSION, text) == f"import acme\n{after}\n"


@pytest.mark.parametrize(
    "text", ["2 - acme.b", "acme.b - 1", "1 - 2 + acme.b", "acme.f()", "acme.f(*acme.b)"]
)
def test_another_expression_is_none(tmp_path, text):
    assert not findings(tmp_path, EXPRESSION, f"import acme\nprint({text})\n")


def test_self_is_what_a_method_belongs_to_or_the_first_argument(tmp_path):
    body = "on: call\nmatch: [.f, acme.f]\nargs: [self, y]\nwhere: source('self', 'b') and value('y', 1)"
    for call in ("b.f(1)", "b.f(y=1)", "acme.f(b, 1)", "acme.f(b, y=1)"):
        assert findings(tmp_path, body, f"import acme\n{call}\n"), call
    for call in ("b.f(2, 1)", "acme.f(1)", "c.f(1)"):
        assert not findings(tmp_path, body, f"import acme\n{call}\n"), call


def test_methods_are_those_of_values_and_classes(tmp_path):
    text = "import acme\nfrom acme import A\nx.f()\nacme.f()\nA.f()\nacme.A.f()\na = acme.make()\na.f()\n"
    assert [each.line for each in findings(tmp_path, "on: call\nmatch: .f", text)] == [3, 5, 6, 8]


def test_a_case_says_its_own_words_where_it_stands(tmp_path):
    body = """
        on: call
        match: acme.f
        args: [x]
        severity: info
        message: "{missing} of {api}"
        cases:
          - where: given('x')
            at: x
            api: "{function}"
            message: "{x} of {name}, {api}"
            severity: error
          - fields: {missing: something}
    """
    first, second = findings(tmp_path, body, "import acme as a\na.f(1 + 2)\na.f()\n")
    assert (first.message, first.severity, first.column, first.api) == ("1 + 2 of f, a.f", "error", 5, "a.f")
    assert (second.message, second.severity, second.column) == ("something of acme.f", "info", 1)


@pytest.mark.parametrize(("once", "lines"), [("file", [2]), ("function", [2, 4])])
def test_once(tmp_path, once, lines):
    text = "import acme\nacme.f()\ndef g():\n    acme.f()\n    acme.f()\n"
    found = findings(tmp_path, f"on: call\nmatch: acme.f\nonce: {once}", text)
    assert [each.line for each in found if each.line != 3] == lines


@pytest.mark.parametrize(
    ("where", "holds", "fails"),
    [
        ("whole()", ["a = 'acme'"], ["a = 'acme 1'"]),
        ("goes_on(' 1')", ["a = 'acme 1'"], ["a = 'acme'"]),
        ("taken('unused')", ["'acme'"], ["a = 'acme'"]),
        (
            "compared()",
            ["'acme' in a", "a.find('acme')", "f(match='acme')", "('acme', 1) == a"],
            ["f('acme')"],
        ),
        ("compared()", ["a.find('acme' if b else c)"], ["a = 'acme'", "a[0]['acme']"]),
        ("may_be_compared()", ["a = 'acme'\na == b", "a = ['acme']"], ["a = 'acme'", "'acme' in a"]),
        ("may_be_compared()", ["for a in ('acme', 'b'): pass", "[a for a in ['acme']]"], ["f(['acme'])"]),
        (
            "compared_beside('x')",
            ["'acme' in a and 'x' in a"],
            ["'acme' in a and 'y' in a", "'acme' in a", "'acme' == a and 'x' in a", "'acme' in a and x"],
        ),
        ("given_to('g')", ["a.g('acme')", "g(['acme'])", "a = 'acme'\ng(a)"], ["h('acme')", "g(h('acme'))"]),
    ],
)
def test_conditions_on_strings(tmp_path, where, holds, fails):
    body = f"on: string\nmatch: acme\nwhere: >-\n  {where}"
    for text in holds:
        assert findings(tmp_path, body, f"{text}\n"), text
    for text in fails:
        assert not findings(tmp_path, body, f"{text}\n"), text


def test_of_phrases_the_longest_one_is_written_anew(tmp_path):
    body = "on: string\nmatch: [acme, acme one]\nfix: safe\noptions: {needs_npu: false}\ndo: phrase('a')"
    assert fixed(tmp_path, body, "x = 'an acme one, b'\n") == "x = 'an a, b'\n"
