"""What one C++ or CUDA file defines: functions with what they mention, kernels, and bindings for Python."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from migrator.native.inventory import DEFINE, Token, is_word, launched, line_starts, tokens, uses_in
from migrator.native.model import Binding, NativeFile, NativeFunction

# Words of the CUDA runtime, its libraries and torch's layer above them. CUDA_VERSION and the like are numbers
# of the build, and is_cuda() only asks: neither needs a card.
_CUDA_WORD = re.compile(
    r"cuda[A-Z]\w*|cu(?:blas|dnn|sparse|fft|rand|solver|tlass|da_runtime)\w*|nv(?:rtc|jpeg)\w*|nccl[A-Z]\w*"
    r"|(?:Optional)?CUDA(?:Guard|Stream\w*|Event|Blas\w*|Generator\w*|MultiStreamGuard|StreamGuard)"
    r"|getCurrentCUDA\w*|THC\w+|(?:AT|C10|TORCH)_CUDA_(?!API|CPP|CU_)\w+|CUDA_KERNEL\w*|GPU_1D_KERNEL_LOOP"
    r"|__syncthreads|thrust|cub"
    r"|cu(?:Mem|Ctx|Launch|Module|Device|Stream|Init)[A-Z]\w*"
)
_NPU_WORD = re.compile(
    r"EXEC_NPU_(?:NO_FORMAT_CHECK_)?CMD|OpCommand|OpPreparation|aclnn\w+|aclrt\w+|at_npu|c10_npu|ACLNN_CMD"
)
_MODULE = re.compile(r"PYBIND11_MODULE_?|NB_MODULE|(?:STABLE_)?TORCH_LIBRARY(?:_FRAGMENT|_IMPL)?(?:_EXPAND)?")
_MODULE_TYPES = frozenset({"module", "module_", "Library"})
_NOT_NAMES = frozenset(
    "__launch_bounds__ __attribute__ alignas decltype __align__ noexcept if for while switch return sizeof"
    " catch __declspec throw requires explicit".split()
)
_KEYWORDS = frozenset(
    "const constexpr static inline void int float double bool auto return if else for while do switch"
    " case default break continue new delete struct class enum union namespace using typedef template"
    " typename public private protected virtual override final noexcept unsigned signed long short char"
    " sizeof this true false nullptr std at torch c10 operator extern volatile mutable friend try catch"
    " throw static_cast reinterpret_cast".split()
)
_UPPER = re.compile(r"[A-Z][A-Z0-9_]{2,}")
_CONDITION = re.compile(r"[ \t]*#[ \t]*(if|ifdef|ifndef|else|elif|endif)\b")
_WORTH = re.compile(
    r"__global__|<<<|\bcuda|CUDA|cu(?:blas|dnn)|PYBIND11_MODULE|TORCH_LIBRARY|RegisterOperators"
)
_MEMBER_SIGNS = frozenset({".", "->"})
_SIGNS = frozenset("{ } ( ) [ ] ; , < > & = ~ . : * >>> :: -> == != <= >=".split())
# Words that say it only with what stands behind them: other programs have a blockIdx, too.
_BEHIND = {"cuda": "::", "blockIdx": ".", "threadIdx": ".", "blockDim": "."}
_CUDA_SCOPES = frozenset({*_BEHIND, "kCUDA"})


def texts_to_scan(native: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """The files as texts, by name; none where a quick look says that none defines or binds an operator."""
    texts = [(name, data.decode("latin-1")) for name, data in native.items()]
    return texts if any(_WORTH.search(text) for _, text in texts) else []


def scan_native(name: str, text: str) -> NativeFile:
    """Read one file. Never raises: what is no C++ has nothing to tell."""
    found = _Scanner(text)
    bindings, registered = tuple(found.bindings), tuple(found.registered)
    cuda = any(function.cuda or function.kernel for function in found.functions)
    # Texts with other letters are not read here as they are written: see texts_to_scan.
    uses = tuple(uses_in(found.every, found.starts)) if text.isascii() else None
    return NativeFile(
        name, tuple(found.functions), bindings, frozenset(found.declared), registered, cuda, uses
    )


class _Scanner:
    def __init__(self, text: str) -> None:
        self.functions: list[NativeFunction] = []
        self.bindings: list[Binding] = []
        self.declared: set[str] = set()
        self.registered: list[tuple[str, frozenset[str]]] = []
        self.kernel_macros: set[str] = set()  # which declare the kernel that is their first argument
        self.starts = line_starts(text)
        self.ascend = "__aicore__" in text  # kernels in Ascend C are declared and started as CUDA's are
        self.every: list[Token] = []  # with the directives, and behind each what it defines
        self.tokens = self._defined(*tokens(text))
        self._scopes()

    def _defined(self, found: list[Token], directives: list[int]) -> list[Token]:
        """Without directives; what a macro stands for becomes a function of its own."""
        code: list[Token] = []
        begin = 0
        for place in directives:
            code += found[begin:place]
            self.every += found[begin : place + 1]
            begin = place + 1
            text, offset = found[place]
            if match := DEFINE.match(text):
                body, _ = tokens(text[match.end() :], offset + match.end())
                self.every += body
                self.functions.append(self._function(match.group(1), offset, _plain(body)))
                if not self.ascend and any(token.text == "__global__" for token in body):
                    self.kernel_macros.add(match.group(1))
            elif condition := _CONDITION.match(text):
                code.append(Token("#" + condition.group(1)[:2], offset))
        self.every += found[begin:]
        return code + found[begin:]

    def _line(self, offset: int) -> int:
        return bisect_right(self.starts, offset)

    # -- definitions ----------------------------------------------------------

    def _scopes(self) -> None:
        """Walk over namespaces and classes; what is in a function's braces is read as a whole."""
        found, owners = self.tokens, [""]
        position = head = 0
        while position < len(found):
            text = found[position].text
            if text == "{":
                position, ended = self._braces(_plain(found[head:position]), position, owners)
                head = position if ended else head
                continue
            if text == ";":
                self._statement(found[head:position])
            elif text == "}" and len(owners) > 1:
                owners.pop()
            position += 1
            if text in (";", "}"):
                head = position

    def _braces(self, head: list[Token], position: int, owners: list[str]) -> tuple[int, bool]:
        """What begins at a brace: gives where to go on, and whether a statement starts there."""
        words = [token.text for token in head]
        if not words or "namespace" in words or (words[0] == "extern" and "(" not in words):
            owners.append(owners[-1])
            return position + 1, True
        head = self._registrations(_without_template(head), whole=False)
        words = [token.text for token in head] or [""]
        if words[0] in ("class", "struct", "union") and words[-1] != ")":
            until = words.index(":") if ":" in words else len(words)
            names = [word for word in words[1:until] if is_word(word)]
            owners.append(next((name for name in reversed(names) if name != "final"), ""))
            return position + 1, True
        end = _matching(self.tokens, position)
        named = None if words[0] == "enum" else _function_name(head)
        if named is None:  # int table[] = {…}; the statement goes on
            return end + 1, "operator" in words
        index, owner = named
        opening = _matching(head, index + 1) + 1 if head[index + 1].text == "<" else index + 1
        closing = _matching(head, opening)
        if head[-1].is_word and any(token.text == ":" for token in head[closing:]):
            return end + 1, False  # Foo(int x) : member{x} {…}
        parameters = head[opening + 1 : closing]
        body = self.tokens[position + 1 : end]
        name = head[index].text
        if _MODULE.fullmatch(name) or any(token.text in _MODULE_TYPES for token in parameters):
            self._bindings(name, parameters, body)
        whole = [*head[closing:], *body]
        kernel = "__global__" in words and "__aicore__" not in words
        if name in self.kernel_macros and parameters:
            name, kernel = parameters[0].text, True
        found = self._function(name, head[index].offset, whole, owner or owners[-1], kernel)
        ends = (*(token.text for token in parameters[1:]), ",")
        own = tuple(word.text for word, end in zip(parameters, ends) if end == "," and word.is_word)
        self.functions.append(found._replace(parameters=own))
        return end + 1, True

    def _statement(self, head: list[Token]) -> None:
        """A statement outside of functions: a declaration, a registration, or a variable."""
        head = self._registrations(_without_template(_plain(head)), whole=True)
        words = [token.text for token in head]
        if "RegisterOperators" in words:
            # torch::RegisterOperators("ns::op", &f), and .op("ns::op(Tensor x) -> Tensor", …).
            named = [at for at, token in enumerate(head) if "::" in (token.literal or "").split("(")[0]]
            for place, until in zip(named, [*named[1:], len(head)]):
                module, _, name = (head[place].literal or "").partition("::")
                self._bind("torch", module, name, "", head[place], head[place:until])
        elif "(" in words and "=" not in words:
            found = _function_name(head)
            if found is not None:
                self.declared.add(head[found[0]].text)

    def _registrations(self, head: list[Token], whole: bool) -> list[Token]:
        """Take ``REGISTER_DEVICE_IMPL(key, CUDA, f)`` off the front; with ``whole`` it may be everything."""
        while len(head) > 3 and _UPPER.fullmatch(head[0].text) and head[1].text == "(":
            end = _matching(head, 1)
            if (end + 1 >= len(head) and not whole) or _MODULE.fullmatch(head[0].text):
                break
            names = [token.text for token in head[2:end] if token.is_word and token.text not in _KEYWORDS]
            if len(names) > 1:
                self.registered.append((names[0], frozenset(names[1:])))
            head = head[end + 1 :]
        return head

    def _function(
        self, name: str, offset: int, body: Sequence[Token], owner: str = "", kernel: bool = False
    ) -> NativeFunction:
        cuda: tuple[int, str] | None = None
        npu = False
        mentions: set[str] = set()
        passed = {*_SIGNS, *_KEYWORDS}  # most tokens are these, or words that were met before
        before = ""
        for place, (text, where) in enumerate(body):
            if text in passed:
                pass
            elif text == "<<<" and self.ascend:
                npu = True
            elif text == "<<<":
                if cuda is None or not cuda[1].startswith("<<<"):
                    cuda = (self._line(where), f"<<<{launched(body, place)}")
            elif before not in _MEMBER_SIGNS and is_word(text):
                mentions.add(text)
                if cuda is None and (_CUDA_WORD.fullmatch(text) or _is_cuda_scope(body, place)):
                    cuda = (self._line(where), text)
                npu = npu or bool(_NPU_WORD.fullmatch(text))
                if text not in _CUDA_SCOPES:
                    passed.add(text)
            before = text
        return NativeFunction(name, self._line(offset), owner, cuda, npu, frozenset(mentions), kernel)

    # -- bindings ---------------------------------------------------------------

    def _bindings(self, macro: str, parameters: list[Token], body: list[Token]) -> None:
        words = [token.text for token in parameters if token.is_word]
        macro = macro if _MODULE.fullmatch(macro) else ""
        kind = "torch" if "TORCH_" in macro or "Library" in words else "pybind"
        module = words[0] if macro and words else ""
        key = words[-2] if "_IMPL" in macro and len(words) > 1 else ""
        for place, (sign, called, bracket) in enumerate(zip(body[:-3], body[1:], body[2:])):
            if sign.text in _MEMBER_SIGNS and called.text in ("def", "impl") and bracket.text == "(":
                end = _matching(body, place + 2)
                arguments = body[place + 3 : end]
                name = next((a.literal for a in arguments[:3] if a.literal is not None), None)
                if name:
                    self._bind(kind, module, name, key, called, arguments)

    def _bind(
        self, kind: str, module: str, name: str, key: str, at: Token, arguments: Sequence[Token]
    ) -> None:
        name = re.split(r"[(\s]", name.rpartition("::")[2] if kind == "torch" else name, maxsplit=1)[0]
        target = self._function(name, at.offset, arguments)
        words = [token.text for token in arguments]
        inner = next((word for word in words if word in ("kCUDA", "CUDA", "PrivateUse1", "kPrivateUse1")), "")
        self.bindings.append(Binding(kind, module, name.split(".")[0], key or inner.lstrip("k"), target))


def _plain(head: list[Token]) -> list[Token]:
    return [token for token in head if token[0][0] != "#"]


def _is_cuda_scope(body: Sequence[Token], place: int) -> bool:
    """``at::cuda::…``, ``blockIdx.x``, or ``torch::kCUDA`` that is not just compared with."""
    text, start = body[place].text, place
    after = body[place + 1].text if place + 1 < len(body) else ""
    if text != "kCUDA":
        return after == _BEHIND.get(text)
    while start and body[start - 1].text in ("::", "torch", "at", "c10", "DeviceType"):
        start -= 1
    return after not in ("==", "!=") and (not start or body[start - 1].text not in ("==", "!=", "case"))


def _matching(found: Sequence[Token], position: int) -> int:
    """Where the bracket at ``position`` ends. At ``#else`` the depth is what it was at ``#if``."""
    opening = found[position].text
    closing = {"(": ")", "{": "}", "<": ">"}[opening]
    depth = 0
    saved: list[int] = []
    telling = {opening, closing, "#if", "#en", "#el"}
    for place in range(position, len(found)):
        text = found[place][0]
        if text not in telling:
            continue
        if text == opening:
            depth += 1
        elif text == closing:
            depth -= 1
            if depth <= 0:
                return place
        elif text == "#if":
            saved.append(depth)
        elif text == "#en" and saved:
            saved.pop()
        elif text == "#el":
            depth = saved[-1] if saved else 0  # the bracket itself stands in one of the branches
    return len(found)


def _without_template(head: list[Token]) -> list[Token]:
    while len(head) > 1 and head[0].text == "template" and head[1].text == "<":
        depth = rounds = place = 0
        for place, token in enumerate(head):
            rounds += {"(": 1, ")": -1}.get(token.text, 0)
            if not rounds:  # (1 < 2) holds no brackets
                depth += {"<": 1, ">": -1, ">>>": -3}.get(token.text, 0)
            if place and depth <= 0:
                break
        head = head[place + 1 :]
    return head


def _function_name(head: list[Token]) -> tuple[int, str] | None:
    """The place of the name that stands before a parameter list, and the class that qualifies it."""
    place = 0
    while place < len(head):
        text = head[place].text
        if text == "=" and (not place or head[place - 1].text != "operator"):
            return None
        if text == "(" and place:
            at, depth = place - 1, 0
            while at and (depth or head[at].text == ">"):  # a specialization: name<int>(…)
                depth += {">": 1, ">>>": 3, "<": -1}.get(head[at].text, 0)
                at -= 1
            if not depth and head[at].is_word and head[at].text not in _NOT_NAMES:
                owner = head[at - 2].text if at > 1 and head[at - 1].text == "::" else ""
                return at, owner
            place = _matching(head, place)
        place += 1
    return None
