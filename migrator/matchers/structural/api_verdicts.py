"""Verdicts on the torch APIs that a file uses, and bundled functions for unsupported ones."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import cache, partial
from typing import Literal

from migrator.api_support.support import limit_words
from migrator.api_support.verdict_type import DTYPES, WIDE_DTYPES, Verdict
from migrator.api_support.verdicts import judge, of_verdict, resolve, tensor_methods
from migrator.api_support.versions import TorchVersion
from migrator.data_folders import data_folder
from migrator.files.naming import EQUIVALENTS
from migrator.findings.finding import Edit
from migrator.language import N_, _
from migrator.light import NamedTuple
from migrator.matchers.context import FileContext, Match, found, insertion, instead_of
from migrator.matchers.npu_import import import_at_top
from migrator.matchers.options import SAID
from migrator.matchers.packs import Options, Rule, pattern_fits
from migrator.names.conditions import asks_for_type, is_for_cpu, is_guarded
from migrator.names.index import ModuleIndex
from migrator.names.tree import LOOPS, argument_of, attributes, hands_on, is_read, root
from migrator.names.what_is import MAYBE, TENSOR, is_cpu_device, options_like
from migrator.names.written_names import Written, may_give, names_in
from migrator.project.facts import is_reducing

_OPEN = ("unsupported", "fallback", "partial", "unknown")
# Rules of their own speak of these: what has an NPU name, and what has none.
_ELSEWHERE = (
    *("torch.cuda", "torch.npu", "torch.backends.", "torch.version"),
    *("torch.xpu", "torch.mps", "torch.mtia"),  # a program has them for the sake of other devices
)
# Where an API of which nothing is known may be an operator, or something that needs a backend. Elsewhere
# (torch.utils, torch.fx, torch.hub …) Python code runs the same on every device.
_MAY_NEED_A_BACKEND = (
    "torch torch.nn torch.nn.functional torch.linalg torch.fft torch.special torch.sparse torch.nested"
    " torch.signal torch.signal.windows torch.distributed torch.optim torch.Tensor torch.accelerator"
).split()
_CAST = {"double": "float64", "half": "float16", "bfloat16": "bfloat16", "cdouble": "complex128"}


def starting_words(
    rules: Iterable[Rule[VerdictOptions]], version: TorchVersion, hardware: str, written: Written
) -> frozenset[str]:
    """The words of a text from which the rules start in it: of names that are not plainly supported."""
    words = written.words
    if "torch" not in words:
        return frozenset()
    about: _About = {(rule.options.verdict, rule.options.advice): rule.excluded for rule in rules}
    methods = tensor_methods() & (written.members | written.apart)
    judged = ((word, judge(f"torch.Tensor.{word}", version, hardware)) for word in methods)
    found = {word for word, verdict in judged if _is_reported(verdict, about)}
    limited = {word for word in words & (DTYPES if hardware else WIDE_DTYPES) if written.may_end(word)}
    for name in names_in(written, "torch"):
        verdict = _verdict(name, version, hardware)
        if verdict is None:
            continue
        # Behind either the API may stand in the text: its own last word, and that of the whole chain.
        last = {name.rpartition(".")[2], verdict.api.rpartition(".")[2]}
        # What a call of it may show that is outside of the limits: one of the dtypes, or a parameter.
        parameters = {each for each in verdict.parameters & words if each != "dtype" or limited}
        by_dtype = any(map(verdict.refuses, limited)) and _is_reported(verdict, about, "dtype")
        if by_dtype or _is_reported(verdict, about):
            found |= last
        elif parameters and _is_reported(verdict, about, "parameter"):
            found |= last if any(may_give(written.text, each, parameters) for each in last) else set()
    return frozenset(found)


# The APIs, by the statuses and whether they are advice, that rules are not about.
_About = Mapping[tuple[str, bool], tuple[str, ...]]


def _is_reported(verdict: Verdict, about: _About, shown: str = "") -> bool:
    """Whether a rule is about an API's status, or about what a call may show: ``dtype`` or ``parameter``."""
    status = "partial" if shown else verdict.status
    patterns = about.get((status, _is_advice(verdict, status, shown != "dtype")))
    return patterns is not None and not any(pattern_fits(pattern, verdict.api) for pattern in patterns)


@cache
def _verdict(name: str, version: TorchVersion, hardware: str) -> Verdict | None:
    """What to say of a full name; None where this is not the place to say anything."""
    if name.startswith(_ELSEWHERE) or not name.rpartition(".")[2].isidentifier():  # a version in a comment
        return None
    verdict = resolve(name, version, hardware)
    if verdict is None or verdict.silent:
        return None
    if verdict.status == "unknown" and not verdict.documents:
        parent, _, last = name.rpartition(".")
        private = last.startswith("_") and parent != "torch"
        if parent not in _MAY_NEED_A_BACKEND or private or last[:1].isupper() or last in _NO_OPERATORS:
            return None
    if verdict.by_hardware and not verdict.kernel:
        return verdict if verdict.api.rpartition(".")[0] in _MAY_NEED_A_BACKEND else None
    return verdict


# Names of the module torch itself that are no functions.
_NO_OPERATORS = DTYPES | frozenset(
    "version random serialization hub jit fx autograd multiprocessing utils ops types strided inf nan pi e"
    " newaxis contiguous_format preserve_format channels_last channels_last_3d complex32 chalf quint8 qint8"
    " qint32 float8_e4m3fn float8_e5m2 uint16 uint32 uint64 classes overrides torch_version return_types"
    " __version__ __path__ __file__ group default_generator xpu mps mlu".split()
)


class VerdictOptions(Options):
    """The status that a rule is about; ``advice`` takes what neither stops a program nor moves it."""

    verdict: Literal["unsupported", "fallback", "partial", "unknown"] = "unsupported"
    advice: bool = False


def find_verdicts(context: FileContext, rule: Rule[VerdictOptions]) -> Iterator[Match]:
    """The uses whose status is the one that the rule is about."""
    for use in uses_of(context):
        verdict, about = use.verdict, (rule.options.verdict, rule.options.advice)
        if about != (use.status, _is_advice(verdict, use.status, _is_plain(use))):
            continue
        if any(pattern_fits(pattern, verdict.api) for pattern in rule.excluded):
            continue
        message, severity = _words(context, use, rule)
        if use.status == "fallback":
            function = context.index.function_of(use.node)
            often = any(isinstance(up, (*LOOPS, ast.Lambda)) for up in context.index.above(use.node))
            if not often and (function is None or function.name in _ONCE):
                severity = "info"  # what is lost is time, once, or once for each module that is made
        if use.certainty != "certain":
            message, severity = _("{message} ({why})", message=message, why=_(use.certainty)), "info"
        shown = verdict._replace(status=use.status, documents=verdict.documents or "not listed")
        says = partial(found, message=message, severity=severity, certainty=use.certainty)
        if use.status == "unsupported" and verdict.kernel == "none" and not verdict.documents:
            says = partial(says, advice=_(_NO_FALLBACK))
        yield says(context, rule, use.node, api=verdict.api, verdict=shown)


_NO_FALLBACK = N_("Compute it with other operators: no kernel exists, not even on the CPU.")
_ONCE = frozenset({"__init__", "__post_init__", "reset_parameters", "init_weights", "_init_weights"})


class Use(NamedTuple):
    """A use of an API; ``note`` says what it shows of the limits of one that is supported otherwise."""

    node: ast.AST
    verdict: Verdict
    note: str = ""
    certainty: str = "certain"

    @property
    def status(self) -> str:
        """The verdict's, or partial for what the place shows."""
        return "partial" if self.note else self.verdict.status


def _is_advice(verdict: Verdict, status: str, plain: bool) -> bool:
    """Whether a use of a status surely neither stops the program nor moves it to the CPU, as far as is known.

    ``plain``: no dtype that the call shows is what limits it.
    """
    if verdict.by_hardware:
        return False  # the product line was named to hear of it
    if status == "unsupported":
        return verdict.runs
    return status == "unknown" or (status == "partial" and plain and not _STOPS.intersection(verdict.limits))


# Limits of every use with which a program stops that does not know of them.
_STOPS = frozenset(("use_npu_class", "infer_only", "create_only", "compile_only"))


def _is_plain(use: Use) -> bool:
    """Whether a limit is one of a parameter, or of every use, and not of a dtype that the call shows."""
    return not use.note or use.note.startswith(_(_PARAMETER))


def uses_of(context: FileContext) -> list[Use]:
    """All uses in a file: there is one rule for each status, and one walk for all of them."""
    return context.index.once(("verdicts",), lambda: [*_walk(context)])


def _walk(context: FileContext) -> Iterator[Use]:
    named: set[str] = set()
    methods = tensor_methods()
    for ref, name in context.index.references():
        if name:
            use = _named(context, ref, name) if is_read(root(ref)) else None
            if use:
                named.add(use.verdict.api)
                yield use
            # What is imported from another file may be a tensor, if somebody looks there.
            if name.startswith("torch.") or context.elsewhere is None:
                continue
        for node in attributes(ref):
            use = _member(context, node) if node.attr in methods and is_read(node) else None
            if use:
                yield use
    yield from _imported(context, named)


def _named(context: FileContext, ref: ast.expr, name: str) -> Use | None:
    """The use of an API by its full name, if there is something to say of it."""
    verdict = _verdict(name, context.version, context.hardware) if name.startswith("torch.") else None
    if verdict is None or asks_for_type(context.index, ref) or is_for_cpu(context.index, ref):
        return None
    call = context.index.call_of(ref)
    if call is None:
        # A product line is too little to speak of annotations.
        evident = (verdict.documents or verdict.kernel) and not verdict.by_hardware
        return Use(ref, verdict) if verdict.status in _OPEN and evident else None
    read_there = getattr(context.index.parent(call), "attr", "") == "numpy"  # numpy takes no others
    if read_there or context.is_on_cpu(*call.args[:1]):
        return None
    note = "" if verdict.status in _OPEN else _shown_limit(context, call, verdict)
    return Use(ref, verdict, note) if note or verdict.status in _OPEN else None


def _shown_limit(context: FileContext, call: ast.Call, verdict: Verdict) -> str:
    """What the call itself shows of the document's limits; empty where it keeps to them or is on the CPU."""
    if is_cpu_device(context.index, argument_of(call, "device")):
        return ""
    for keyword in call.keywords:
        dtype = _dtype_name(context, keyword.value) if keyword.arg == "dtype" else ""
        if verdict.refuses(dtype):
            break
        # A limited parameter may be given its default, or a dtype that nothing is known against.
        usual = _DEFAULTS.get(str(keyword.arg), (None, False, 0))
        is_usual = isinstance(keyword.value, ast.Constant) and keyword.value.value in usual
        is_usual = dtype not in WIDE_DTYPES if keyword.arg == "dtype" else is_usual
        if keyword.arg in verdict.parameters and not is_usual:
            return f"{_(_PARAMETER)} {keyword.arg}"
    else:
        listed, dtype = verdict.dtypes or verdict.left_out, ""
        if call.args and listed and verdict.api.rpartition(".")[0] in _MAY_NEED_A_BACKEND:
            dtype = _dtype_of(context, call.args[0])
        # Of float64 that is reduced a rule of its own speaks, and takes it away.
        if not verdict.refuses(dtype) or (dtype == "float64" and is_reducing(verdict.api)):
            return ""
    if verdict.lacks(dtype):
        return _("the documents exclude {dtype} for {hardware}", dtype=dtype, hardware=context.hardware)
    allowed = ", ".join(sorted(verdict.dtypes))
    return _("{dtype} is not among its documented dtypes ({allowed})", dtype=dtype, allowed=allowed)


_PARAMETER = N_("the documents limit its parameter")


_DEFAULTS = {
    "sorted": (True,),
    "dilation": (1,),
    "p": (2,),  # of cdist, pdist, normalize
    "approximate": ("none",),
    "mode": ("constant", "nearest"),
    "backend": ("eager", "aot_eager"),  # of torch.compile: nothing is generated for a device
}


def _dtype_name(context: FileContext, node: ast.AST) -> str:
    """``float64`` for torch.float64; empty for anything else."""
    name = context.index.qualified_name(node)
    return name[len("torch.") :] if name.startswith("torch.") else ""


def _dtype_of(context: FileContext, node: ast.AST, depth: int = 0) -> str:
    """The dtype that an expression shows to have: by a cast, or by its factory's dtype."""
    values = context.index.only_assigned(node) if isinstance(node, ast.Name) and depth < 3 else []
    if len(values) == 1:
        return _dtype_of(context, values[0], depth + 1)
    if not isinstance(node, ast.Call):
        return ""
    name, dtype = context.index.qualified_name(node.func), argument_of(node, "dtype")
    if isinstance(node.func, ast.Attribute) and not name and dtype is None:
        if node.func.attr in _CAST and not node.args:
            return _CAST[node.func.attr]
        dtype = next(iter(node.args), None) if node.func.attr in ("to", "type") else None
    return _dtype_name(context, dtype) if dtype and (name.startswith("torch.") or not name) else ""


def _member(context: FileContext, node: ast.Attribute) -> Use | None:
    """``x.mode()``: a method of a tensor, if x is one."""
    verdict = judge(f"torch.Tensor.{node.attr}", context.version, context.hardware)
    if verdict.status not in _OPEN or options_like(node.value):
        return None
    called = context.index.call_of(node) is not None
    if (verdict.by_hardware and not called) or context.is_on_cpu(node.value):
        return None
    value = context.value(node.value)
    if value.is_no_tensor:
        return None
    if value.kind == TENSOR or (called and node.attr in _ONLY_TENSORS):
        return Use(node, verdict)
    if verdict.by_hardware or not called:
        return None
    likely = N_("likely: some values assigned to it may not be tensors")
    if value.kind != MAYBE:
        likely = N_("likely: its type is not known, and few others have the method")
    return Use(node, verdict, certainty=likely) if value.kind == MAYBE or node.attr not in _SHARED else None


# Methods that nothing but a tensor (or a numpy-like twin of one) has.
_ONLY_TENSORS = frozenset(
    "cauchy_ chalf cholesky_inverse cholesky_solve digamma_ geometric_ geqrf index_reduce index_reduce_"
    " int_repr lgamma_ log_normal_ logdet lu_unpack mvlgamma mvlgamma_ nextafter_ orgqr ormqr polygamma"
    " polygamma_ q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point"
    " scatter_reduce share_memory_ sparse_resize_ sparse_resize_and_clear_ sspaddmm to_mkldnn to_sparse_bsc"
    " to_sparse_bsr to_sparse_csc to_sparse_csr unique_consecutive apply_ map_".split()
)
# Methods that other things have as often: images, arrays, statistics, modules, models, solvers, data frames.
_SHARED = frozenset(
    "mode fft ifft rfft irfft eig solve det double pin_memory is_shared to_dense to_sparse trace stft values"
    " dequantize copysign lstsq cholesky digamma lgamma heaviside is_pinned smm".split()
)


def _imported(context: FileContext, named: set[str]) -> Iterator[Use]:
    """Imports of names that are not used in the file itself."""
    for node in context.index.imports:
        if not isinstance(node, ast.ImportFrom) or node.level or not (node.module or "").startswith("torch"):
            continue
        for alias in node.names:
            verdict = _verdict(f"{node.module}.{alias.name}", context.version, context.hardware)
            if verdict is None or verdict.by_hardware or not (verdict.documents or verdict.kernel):
                continue
            if verdict.status in _OPEN and verdict.api not in named:
                named.add(verdict.api)
                yield Use(node, verdict)


_KERNEL_WORDS = {
    "kernel": N_(", though torch_npu registers a kernel for it"),
    "composite": N_(", though torch composes it from other operators"),
    "none": N_(", and torch_npu registers no kernel: it falls back to the CPU, or raises"),
    "python": N_(", though it needs no operator"),
    "": "",
}
_PYTHON_WORDS = N_(", though it is Python code that only calls other functions")


def _words(context: FileContext, use: Use, rule: Rule[VerdictOptions]) -> tuple[str, str]:
    """Message and severity."""
    verdict, status, severity = use.verdict, use.status, rule.severity
    where = _(" (as of torch {asof})", asof=verdict.asof) if verdict.asof else ""
    # What the sentences speak of; each takes what it names.
    about = {"api": verdict.api, "where": where, "asof": verdict.asof, "documents": verdict.documents}
    if verdict.ticked and status == "unsupported":
        products = {"ticked": _(" and ").join(verdict.ticked), "hardware": context.hardware}
        message = _("the documents list {api} for {ticked}{where}, not for {hardware}", **about, **products)
        return f"{message}{_(_KERNEL_WORDS[verdict.kernel])}", "info"
    by_evidence = status == "fallback" and verdict.evidence is not None
    if by_evidence or (status == "unsupported" and not verdict.documents):
        message = f"{verdict.api}: {of_verdict(verdict, context.version)}"
    elif status == "unsupported":
        python = verdict.runs and not verdict.kernel and verdict.evidence is not None
        evidence = _(_PYTHON_WORDS if python else _KERNEL_WORDS[verdict.kernel])
        severity = "info" if verdict.runs else severity
        message = _("{api} is documented as unsupported{where}{evidence}", **about, evidence=evidence)
    elif status == "fallback" and verdict.kernel == "none":
        called = _("; documented as {documents}{where}", **about) if verdict.documents else ""
        severity = "info" if verdict.documents in ("supported", "partial") else severity
        said = N_("torch_npu registers no kernel for {api}: it falls back to the CPU (slow){called}")
        message = _(said, **about, called=called)
    elif status == "fallback":
        message = _("{api} falls back to the CPU according to the documents{where}", **about)
    elif status == "partial":
        note = use.note or "; ".join(limit_words(verdict.limits, ("no limit",)))
        severity = "info" if _is_plain(use) else severity
        message = _("{api} has limits on NPUs{where}: {note}", **about, note=note)
    elif verdict.documents:
        severity = "info"
        message = _("the documents of torch {asof} contradict each other about {api}", **about)
        if verdict.documents == "unsupported":
            message = _("only the documents of torch {asof} list {api}, as unsupported", **about)
    else:
        message = _("{api} appears in no document and no operator list", **about)
    return message, severity


class FunctionOptions(Options):
    """``functions``: what stands for an API where that is not called as the API's last part.

    ``differs``: what a function does not do as torch does, by its name. In the message ``{function}`` is that
    name, ``{why}`` why torch's is not used.
    """

    functions: dict[str, str] = field(default_factory=dict)
    differs: dict[str, str] = field(default_factory=dict, metadata=SAID)


FunctionRule = Rule[FunctionOptions]


def find_equivalents(context: FileContext, rule: FunctionRule) -> Iterator[Match]:
    """The uses of APIs missing on the NPU, or in this torch; with the import that their fixes need."""
    index = context.index
    statement, module = home_of_ours(context)
    needing: list[ast.AST] = []
    lacking: dict[ast.expr, str] = {}
    for use in uses_of(context):  # for which the NPU has no kernel, of names and of tensors' methods
        verdict = use.verdict
        if verdict.api in rule.match and use.certainty == "certain" and isinstance(use.node, ast.expr):
            if use.status == "fallback" or (use.status == "unsupported" and not verdict.runs):
                lacking[use.node] = verdict.api
    absent: dict[ast.expr, str] = {}
    for node, api in context.uses_of(rule):  # of names that this torch does not have
        if isinstance(node, ast.Attribute) and not asks_for_type(index, node):
            if judge(api, context.version).status == "absent" and not is_guarded(index, node, [node.attr]):
                absent[node] = api
    for node, api in {**lacking, **absent}.items():
        function = rule.options.functions.get(api) or api.rpartition(".")[2]
        why = _("has no NPU kernel")
        if node in absent:
            why = _("is absent in torch {version}", version=context.version.text)
        message = rule.message.replace("{function}", function).replace("{why}", why)
        edits = _calls_of_ours(index, node, f"{module}.{function}", function) if module else []
        needing += [node] if edits else []
        differs = rule.options.differs.get(function, "")
        message = message + _("; ") + differs if differs else message
        advice = "" if edits else rule.advice
        yield found(context, rule, node, api=api, edits=edits, message=message, advice=advice)
    place = import_at_top(index, statement) if needing else None
    if place is not None:
        yield insertion(context, rule, *place, EQUIVALENTS, _("the functions called below"))


def home_of_ours(context: FileContext) -> tuple[str, str]:
    """The import of the package of functions, and its name; none where the file has another such name."""
    statement = context.project.import_of(EQUIVALENTS, context.name)
    module = statement.rpartition(" ")[2]
    # Its name has to be bound by nothing in the file, or by the import that is wanted.
    bindings = (each for scope in context.index.scopes for each in scope.bindings.get(module, ()))
    others = (each.kind != "import" or context.index.segment(each.node) != statement for each in bindings)
    return statement, "" if any(others) else module


def _calls_of_ours(index: ModuleIndex, node: ast.expr, written: str, function: str) -> list[Edit]:
    """The edits that call the function; none where it does not take what is given."""
    call = index.call_of(node)
    names, positions, _required = parameters_of(function)
    if call is not None:
        given = len(call.args) + (0 if index.qualified_name(node) else 1)
        if hands_on(call) or given > len(positions) or any(each.arg not in names for each in call.keywords):
            return []
    if index.qualified_name(node):
        return [instead_of(index, node, written)]
    if call is None or not isinstance(node, ast.Attribute) or call.func is not node:
        return []  # a bound method
    # What stands between the tensor and its arguments: a parenthesis, the point, the name, a parenthesis.
    start, end = index.start(call), index.end(node)
    name = end - len(node.attr.encode())
    point = index.data.rfind(b".", 0, name)
    opening = index.data.find(b"(", end)
    if index.data[point + 1 : name].strip() or index.data[end:opening].strip():
        return []  # a comment
    rest = ", " if call.args or call.keywords else ""
    return [Edit(start, start, f"{written}("), Edit(point, opening + 1, rest)]


@cache
def parameters_of(function: str) -> tuple[frozenset[str], tuple[str, ...], tuple[str, ...]]:
    """The names of a function's parameters; in order, the positional ones and the required ones."""
    tree = ast.parse((data_folder("reports") / EQUIVALENTS / f"{function}.py").read_bytes())
    own = next(each for each in tree.body if getattr(each, "name", "") == function)
    first = 0
    if isinstance(own, ast.ClassDef):
        inits = (each for each in own.body if getattr(each, "name", "") == "__init__")
        own, first = next(inits, own), 1
    if not isinstance(own, ast.FunctionDef):
        return frozenset(), (), ()
    positional = own.args.args[first:]
    names = tuple(each.arg for each in positional)
    required = names[: len(names) - len(own.args.defaults)]
    return frozenset((*names, *(each.arg for each in own.args.kwonlyargs))), names, required
