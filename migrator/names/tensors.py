"""Is an expression a tensor? What its file says of it.

It looks at factory calls, annotations, what is stored on ``self``, and the parameters of ``forward``. An
answer is TENSOR, OTHER (surely something else), MAYBE (some of what binds it is a tensor, the rest is not
known) or UNKNOWN.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from typing import Any, Optional

from migrator.names.index import ModuleIndex
from migrator.names.receivers import options_like
from migrator.names.scopes import Binding

TENSOR, OTHER, MAYBE, UNKNOWN = "tensor", "other", "maybe", "unknown"

# Asks something outside of the file what an expression is.
Elsewhere = Callable[[Any], str]

_DEEPEST = 8
# Compiled when the first annotation is read.
_TENSOR_TYPES = (
    r"(?:^|[\[\s.|])(?:Tensor|(?:Float|Long|Int|Bool|Half|Double|Byte|BFloat16)Tensor|Variable|Parameter)\b"
)
_CLEAR_TYPES = (
    r"^(?:typing\.)?(?:str|int|float|bool|bytes|dict|list|tuple|set|Dict|List|Tuple|Set|Sequence|Callable|Path"
    r"|np\.\w+|numpy\.\w+|nd?array|Image(?:\.Image)?|PIL\.\w+(?:\.\w+)?|pd\.\w+|DataFrame|torch\.(?:device|dtype"
    r"|Size|Generator))\b"
)
# torch functions with one dot that give no tensor.
_NO_TENSOR = frozenset(
    "device dtype load save compile no_grad enable_grad inference_mode Generator Size finfo iinfo typename"
    " numel manual_seed seed initial_seed get_rng_state set_rng_state get_default_dtype set_default_dtype"
    " autocast is_tensor is_storage is_complex is_floating_point is_nonzero is_grad_enabled set_grad_enabled"
    " is_inference_mode_enabled equal allclose get_num_threads set_num_threads get_default_device"
    " set_default_device set_printoptions use_deterministic_algorithms are_deterministic_algorithms_enabled"
    " set_float32_matmul_precision get_float32_matmul_precision can_cast promote_types result_type"
    " broadcast_shapes get_device_module"
    " vmap set_default_tensor_type device_count is_autocast_enabled".split()
)
# What a tensor's methods give that is no tensor.
_PLAIN_RESULTS = frozenset(
    "item tolist numpy size dim ndim numel nelement shape device dtype layout is_cuda is_contiguous stride"
    " storage untyped_storage data_ptr element_size get_device type_as_str names is_floating_point is_complex"
    " requires_grad grad_fn is_leaf is_sparse register_hook backward storage_offset ndimension".split()
)
_TENSOR_ATTRIBUTES = frozenset({"data", "grad", "T", "mT", "H", "mH", "real", "imag"})
# Modules of torch.nn that give something other than one tensor.
_TUPLE_MODULES = frozenset(
    "RNN LSTM GRU LSTMCell MultiheadAttention ModuleList ModuleDict ParameterList ParameterDict"
    " AdaptiveLogSoftmaxWithLoss".split()
)
_TENSOR_SPACES = ("torch.nn.functional.", "torch.linalg.", "torch.fft.", "torch.special.")
_BUILTINS = frozenset(
    "int float str bool len list dict tuple set range open sorted enumerate zip map filter print repr type"
    " isinstance frozenset bytes min max abs round getattr".split()
)
_UNSURE_BUILTINS = frozenset({"min", "max", "abs", "sum", "round", "getattr"})


def tensor_like(index: ModuleIndex, node: Any, elsewhere: Optional[Elsewhere] = None, depth: int = 0) -> str:
    """Whether an expression is a tensor, as far as this file, and ``elsewhere``, tell."""
    if depth > _DEEPEST:
        return UNKNOWN
    answer = _in_this_file(_Question(index, elsewhere, depth + 1), node)
    if answer == UNKNOWN and elsewhere is not None and isinstance(node, (ast.Call, ast.Attribute, ast.Name)):
        return elsewhere(node)
    return answer


def returned(index: ModuleIndex, function: Any) -> str:
    """Whether what a function of this file returns is a tensor."""
    return _Question(index, None, 1).returned(function)


def _in_this_file(ask: _Question, node: Any) -> str:
    if isinstance(node, ast.Call):
        return ask.call(node)
    if isinstance(node, ast.Name):
        return ask.name(node)
    if isinstance(node, ast.Attribute):
        return ask.attribute(node)
    if isinstance(node, ast.Subscript):
        held = ask.of(node.value)
        return UNKNOWN if held == OTHER else held  # a list may hold tensors
    if isinstance(node, ast.BinOp):
        return TENSOR if TENSOR in (ask.of(node.left), ask.of(node.right)) else UNKNOWN
    if isinstance(node, ast.UnaryOp):
        return OTHER if isinstance(node.op, ast.Not) else ask.of(node.operand)
    if isinstance(node, ast.IfExp):
        return _together([ask.of(node.body), ask.of(node.orelse)])
    if isinstance(node, ast.Compare):
        return ask.of(node.left) if ask.of(node.left) == TENSOR else UNKNOWN
    if isinstance(node, ast.NamedExpr):
        return ask.of(node.value)
    plain = (ast.Constant, ast.JoinedStr, ast.Dict, ast.List, ast.Tuple, ast.Set, ast.Lambda, ast.ListComp)
    return OTHER if isinstance(node, plain) else UNKNOWN


class _Question:
    """The file, and how deep the question already is."""

    def __init__(self, index: ModuleIndex, elsewhere: Optional[Elsewhere], depth: int) -> None:
        self.index = index
        self.elsewhere = elsewhere
        self.depth = depth

    def of(self, node: Any) -> str:
        return tensor_like(self.index, node, self.elsewhere, self.depth)

    def call(self, node: ast.Call) -> str:
        name = self.index.qualified_name(node.func)
        if name:
            answer = _made_by(name)
            if answer != UNKNOWN:
                return answer
        function = node.func
        if isinstance(function, ast.Name):
            return self._local_call(function)
        if isinstance(function, ast.Attribute) and not name:
            if function.attr in _PLAIN_RESULTS:
                return OTHER
            holder = self.of(function.value)
            if holder in (TENSOR, MAYBE):
                return holder
            return self._module_result(function)
        return UNKNOWN

    def _local_call(self, function: ast.Name) -> str:
        bindings = self.index.bindings(function)
        if not bindings:
            plain = function.id in _BUILTINS - _UNSURE_BUILTINS
            return OTHER if plain else UNKNOWN
        for binding in bindings:
            if binding.kind == "def" and len(bindings) == 1:
                return self.returned(binding.node)
            if binding.kind == "class":
                return OTHER if not tensor_class(self.index, binding.node) else TENSOR
        return UNKNOWN

    def returned(self, function: Any) -> str:
        """What a function of this file returns: its annotation, or all its return statements."""
        answer = _annotated(function.returns)
        if answer != UNKNOWN:
            return answer
        if self.depth > _DEEPEST:
            return UNKNOWN
        inside = self.index.statements_in(function)
        values = [s.value for s in inside if isinstance(s, ast.Return) and s.value is not None]
        for statement in inside:
            if isinstance(statement, ast.Return):
                self.index.expand(statement)
        return _together([self.of(value) for value in values]) if values else UNKNOWN

    def _module_result(self, function: ast.Attribute) -> str:
        """``self.conv(x)``: what a module of torch.nn gives."""
        if not (isinstance(function.value, ast.Name) and function.value.id == "self"):
            return UNKNOWN
        owner = self.index.class_of(function)
        if owner is None:
            return UNKNOWN
        for item in owner.body:
            if isinstance(item, ast.FunctionDef) and item.name == function.attr:
                return self.returned(item)
        answers = []
        for value in self.index.stored_on_self(owner).get(function.attr, ()):
            made = self.index.qualified_name(value.func) if isinstance(value, ast.Call) else ""
            last = made.rpartition(".")[2]
            module = made.startswith("torch.nn.") and last[:1].isupper() and last not in _TUPLE_MODULES
            answers.append(TENSOR if module else UNKNOWN)
        return _together(answers)

    def attribute(self, node: ast.Attribute) -> str:
        if options_like(node.value):
            return OTHER
        name = self.index.qualified_name(node)
        if name:
            return OTHER if name.startswith("torch.") or name.split(".")[0] in _FOREIGN else UNKNOWN
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            owner = self.index.class_of(node)
            if owner is not None:
                values = self.index.stored_on_self(owner).get(node.attr, [])
                return _together([self.of(value) for value in values]) if values else UNKNOWN
        if node.attr in _TENSOR_ATTRIBUTES:
            holder = self.of(node.value)
            return holder if holder in (TENSOR, MAYBE) else UNKNOWN
        return OTHER if node.attr in _PLAIN_RESULTS and self.of(node.value) == TENSOR else UNKNOWN

    def name(self, node: ast.Name) -> str:
        if node.id in ("self", "cls"):
            owner = self.index.class_of(node)
            if owner is not None:
                return TENSOR if tensor_class(self.index, owner) else OTHER
        if options_like(node):
            return OTHER
        bindings = [binding for binding in self.index.bindings(node) if not _augmented(binding)]
        last = self._just_before(node, bindings)
        if last is None:
            return _together(self._binding(node, binding) for binding in bindings)
        answer = self.of(last)
        if answer == UNKNOWN and isinstance(last, ast.Call):
            given = [a for a in last.args if isinstance(a, ast.Name) and a.id == node.id]
            if given and self.of(given[0]) in (TENSOR, MAYBE):
                return MAYBE  # x = self.block(x)
        return answer

    def _just_before(self, node: ast.Name, bindings: list[Binding]) -> Any:
        """What a name was given last, where no branch and no loop lies between; None where one may."""
        here = self.index.statement_of(node)
        before = [b for b in bindings if getattr(b.node, "lineno", here.lineno) < here.lineno]
        last = max(before, key=lambda binding: int(binding.node.lineno), default=None)
        if last is None or last.value is None or not isinstance(last.node, ast.Assign):
            return None
        parent = self.index.parent(here)
        blocks = [getattr(parent, name, None) or () for name in ("body", "orelse", "finalbody")]
        if not any(last.node in block and here in block for block in blocks):
            return None
        self.index.expand(last.node)
        return last.value

    def _binding(self, node: ast.Name, binding: Binding) -> str:
        if binding.kind == "import":
            if isinstance(binding.node, ast.Import):
                return OTHER  # a module
            return OTHER if binding.name.startswith("torch.") else UNKNOWN
        if binding.kind in ("class", "def"):
            return OTHER
        if binding.kind == "param":
            return self._parameter(node, binding)
        if binding.value is None:
            return self._unpacked(node, binding)
        self.index.expand(binding.node)
        if isinstance(binding.node, ast.AnnAssign):
            answer = _annotated(binding.node.annotation)
            if answer != UNKNOWN:
                return answer
        if any(isinstance(part, ast.Name) and part.id == node.id for part in ast.walk(binding.value)):
            return self._from_itself(node, binding.value)
        return self.of(binding.value)

    def _from_itself(self, node: ast.Name, value: Any) -> str:
        """``x = f(x)``: what f gives, without asking for x again."""
        if isinstance(value, ast.Call) and _made_by(self.index.qualified_name(value.func)) != UNKNOWN:
            return _made_by(self.index.qualified_name(value.func))
        return _SAME

    def _unpacked(self, node: ast.Name, binding: Binding) -> str:
        """One of several names that a call gives: ``values, places = x.max(1)``."""
        statement = binding.node
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            return UNKNOWN
        self.index.expand(statement)
        return TENSOR if self.of(statement.value) == TENSOR else UNKNOWN

    def _parameter(self, node: ast.Name, binding: Binding) -> str:
        answer = _annotated(binding.annotation)
        if answer != UNKNOWN or binding.annotation is not None:
            return answer
        default = binding.value
        if isinstance(default, ast.Constant) and default.value is not None:
            return OTHER
        function, owner = self.index.function_of(node), self.index.class_of(node)
        if function is None or owner is None or not isinstance(binding.node, ast.arg):
            return UNKNOWN
        starred = (function.args.vararg, function.args.kwarg)
        forward = function.name == "forward" and binding.node not in starred
        if forward and default is None and _is_module(self.index, owner):
            return TENSOR
        return UNKNOWN


_SAME = "same"


def _together(answers: Iterable[str]) -> str:
    """One answer for everything that may bind a name."""
    answers = [answer for answer in answers if answer != _SAME]
    if not answers:
        return UNKNOWN
    if all(answer == answers[0] for answer in answers):
        return answers[0]
    known = set(answers) - {UNKNOWN}
    return MAYBE if known & {TENSOR, MAYBE} and OTHER not in known else UNKNOWN


def _augmented(binding: Binding) -> bool:
    return isinstance(binding.node, ast.AugAssign)


def _made_by(name: str) -> str:
    """What calling a qualified name gives."""
    if not name:
        return UNKNOWN
    if not name.startswith("torch."):
        foreign = not name.startswith(".") and "." in name and name.split(".")[0] in _FOREIGN
        return OTHER if foreign else UNKNOWN
    last = name.rpartition(".")[2]
    if name.startswith(_TENSOR_SPACES) or name in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
        return TENSOR
    if last.endswith("Tensor") and last != "FakeTensor":
        return TENSOR
    if name == "torch.autograd.Variable":
        return TENSOR
    if name.startswith("torch.Tensor."):
        return UNKNOWN
    if name.count(".") == 1:
        return OTHER if last in _NO_TENSOR else TENSOR
    if name.startswith("torch.nn.") and last[:1].isupper():
        return OTHER
    return UNKNOWN


# Libraries whose calls give no torch tensors.
_FOREIGN = frozenset(
    "numpy np scipy PIL cv2 pandas json os sys re math random pathlib collections itertools functools time"
    " logging argparse yaml skimage matplotlib sklearn tensorflow jax cupy pickle copy_reg datetime string"
    " subprocess shutil glob h5py librosa soundfile torchvision.transforms".split()
)


def _annotated(annotation: Any) -> str:
    if annotation is None:
        return UNKNOWN
    text = ast.unparse(annotation).strip("'\"")
    if re.search(_TENSOR_TYPES, text):
        held = re.match(r"(?:typing\.)?(?:List|Tuple|Dict|Sequence|Iterable|list|tuple|dict)\b", text)
        return UNKNOWN if held else TENSOR
    return OTHER if re.match(_CLEAR_TYPES, text) else UNKNOWN


def _is_module(index: ModuleIndex, owner: ast.ClassDef) -> bool:
    index.expand(owner)
    for base in owner.bases:
        name = index.qualified_name(base) or ast.unparse(base)
        last = name.rpartition(".")[2]
        if last.endswith(("Module", "Model", "Loss", "Block", "Layer", "Net", "Function", "Head")):
            return True
        if name.startswith("torch.nn."):
            return True
    return False


def tensor_class(index: ModuleIndex, owner: ast.ClassDef) -> bool:
    """Whether a class is derived from torch's tensors."""
    index.expand(owner)
    return any(index.qualified_name(base) in ("torch.Tensor", "torch.nn.Parameter") for base in owner.bases)
