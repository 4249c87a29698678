"""What a value is: a tensor, a module, an object of a class or of another library? What its file says of it.

It looks at imports, factory calls, annotations, what is stored on ``self``, and the parameters of
``forward``. A class counts as what its instances are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from typing import Optional, Union

from migrator.light import NamedTuple
from migrator.names.index import ModuleIndex
from migrator.names.made_from import bound, last_assigned, returned_values
from migrator.names.outline import Binding
from migrator.names.tree import FUNCTIONS, Function, argument_of, bare_name, called_name, holder_of, is_cpu

TENSOR, MODULE, CLASS, FOREIGN = "tensor", "module", "class", "foreign"
OTHER, MAYBE, UNKNOWN = "other", "maybe", "unknown"


class Value(NamedTuple):
    """What a value is.

    ``kind`` is TENSOR, MODULE (of torch.nn), CLASS (of a class of the file), FOREIGN (a member of another
    library), OTHER (surely none of these), MAYBE (some of what binds it is a tensor, the rest is not known)
    or UNKNOWN. ``name`` is the name of its class or library, where one is known.
    """

    kind: str
    name: str = ""

    @property
    def is_no_tensor(self) -> bool:
        """Whether it surely is something else than a tensor."""
        if self.kind == FOREIGN:  # what an unknown library has may well be a tensor
            return bool(self.name) and ("." not in self.name or self.name.split(".")[0] in _LIBRARIES)
        return self.kind in (MODULE, CLASS, OTHER)


# Asks something outside of the file what an expression is.
Elsewhere = Callable[[Union[ast.Call, ast.Attribute, ast.Name]], Value]

_OPTIONS = re.compile(
    r"(?:^|_)(?:args?|argv|opts?|options?|cfg|config|conf|params|hparams?|flags|settings|namespace)$",
    re.IGNORECASE,
)
# Compiled when the first annotation is read.
_TENSOR_TYPES = (
    r"(?:^|[\[\s.|])(?:Tensor|(?:Float|Long|Int|Bool|Half|Double|Byte|BFloat16)Tensor|Variable|Parameter)\b"
)
_CLEAR_TYPES = (
    r"^(?:typing\.)?(?:str|int|float|bool|bytes|dict|list|tuple|set|Dict|List|Tuple|Set|Sequence|Callable|Path"
    r"|np\.\w+|numpy\.\w+|nd?array|Image(?:\.Image)?|PIL\.\w+(?:\.\w+)?|pd\.\w+|DataFrame|torch\.(?:device|dtype"
    r"|Size|Generator))\b"
)
_CONTAINER_TYPES = r"(?:typing\.)?(?:List|Tuple|Dict|Sequence|Iterable|list|tuple|dict)\b"
_TENSOR_CLASSES = frozenset(
    {"torch.Tensor", "torch.autograd.Variable", "torch.nn.Parameter", "torch.nn.parameter.Parameter"}
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
_OF_MODULES = frozenset("to cuda npu cpu float double half bfloat16 train eval".split())  # they return it
_TENSOR_ATTRIBUTES = frozenset({"data", "grad", "T", "mT", "H", "mH", "real", "imag"})
# Modules of torch.nn that give something other than one tensor.
_TUPLE_MODULES = frozenset(
    "RNN LSTM GRU LSTMCell MultiheadAttention ModuleList ModuleDict ParameterList ParameterDict"
    " AdaptiveLogSoftmaxWithLoss".split()
)
_TENSOR_SPACES = ("torch.nn.functional.", "torch.linalg.", "torch.fft.", "torch.special.")
_PLAIN_BUILTINS = frozenset(
    "int float str bool len list dict tuple set range open sorted enumerate zip map filter print repr type"
    " isinstance frozenset bytes".split()
)
# Libraries whose calls give no torch tensors.
_LIBRARIES = frozenset(
    "numpy np scipy PIL cv2 pandas json os sys re math random pathlib collections itertools functools time"
    " logging argparse yaml skimage matplotlib sklearn tensorflow jax cupy pickle copy_reg datetime string"
    " subprocess shutil glob h5py librosa soundfile".split()
)
_MAKES_TENSOR = re.compile(r"Tensor(?<!\.FakeTensor)$")
_MODULE_BASES = ("Module", "Model", "Loss", "Block", "Layer", "Net", "Function", "Head")
_PLAIN = (ast.Constant, ast.JoinedStr, ast.Dict, ast.List, ast.Tuple, ast.Set, ast.Lambda, ast.ListComp)

# Functions of torch that make a tensor on the CPU where no device is named.
_ON_CPU = frozenset(
    "torch.arange torch.empty torch.empty_strided torch.eye torch.from_numpy torch.full torch.linspace"
    " torch.ones torch.rand torch.randint torch.randn torch.tensor torch.zeros torch.Tensor".split()
)

# Methods that give a tensor on the device of what they are given, or on another one.
_MOVING = ("to", "type", "type_as", "cuda", "npu", "to_empty")

_UNKNOWN, _OTHER, _TENSOR, _MAYBE = Value(UNKNOWN), Value(OTHER), Value(TENSOR), Value(MAYBE)
_SAME = Value("same")  # what it was before: x = f(x)


def options_like(node: ast.expr) -> bool:
    """Whether a receiver's name says that it holds settings: ``args.cuda`` is a flag."""
    while isinstance(node, ast.Call):
        node = node.func
    return bool(_OPTIONS.search(bare_name(node)))


def what_is(index: ModuleIndex, node: ast.expr, elsewhere: Optional[Elsewhere] = None) -> Value:
    """What an expression is, as far as this file, and ``elsewhere``, tell."""
    question = "what is it here?" if elsewhere is None else "what is it?"
    return index.ask(question, node, lambda: _Question(index, elsewhere).answer(node), _UNKNOWN)


def returned(index: ModuleIndex, function: Function) -> Value:
    """What a function of this file returns."""
    return _Question(index, None).returned(function)


def is_tensor_class(index: ModuleIndex, owner: ast.ClassDef) -> bool:
    """Whether a class is derived from torch's tensors."""
    index.expand(owner)
    return any(index.qualified_name(base) in ("torch.Tensor", "torch.nn.Parameter") for base in owner.bases)


class _Question:
    """Asks what expressions of a file are, and ``elsewhere`` what the file does not say."""

    def __init__(self, index: ModuleIndex, elsewhere: Optional[Elsewhere]) -> None:
        self.index = index
        self.elsewhere = elsewhere

    def of(self, node: ast.expr) -> Value:
        return what_is(self.index, node, self.elsewhere)

    def answer(self, node: ast.expr) -> Value:
        """What an expression is, found by its kind."""
        answer = self._in_this_file(node)
        if answer.kind == UNKNOWN and self.elsewhere is not None:
            if isinstance(node, (ast.Call, ast.Attribute, ast.Name)):
                return self.elsewhere(node)
        return answer

    def _in_this_file(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.Name):
            return self.name(node)
        if isinstance(node, ast.Attribute):
            return self.attribute(node)
        if isinstance(node, ast.Subscript):
            held = self.of(node.value)
            # A list may hold tensors, and what holds modules gives one.
            return Value(held.kind) if held.kind in (TENSOR, MAYBE, MODULE, FOREIGN) else _UNKNOWN
        if isinstance(node, ast.BinOp):
            return _TENSOR if TENSOR in (self.of(node.left).kind, self.of(node.right).kind) else _UNKNOWN
        if isinstance(node, ast.UnaryOp):
            return _OTHER if isinstance(node.op, ast.Not) else self.of(node.operand)
        if isinstance(node, ast.IfExp):
            return _together([self.of(node.body), self.of(node.orelse)])
        if isinstance(node, ast.Compare):
            return _TENSOR if self.of(node.left).kind == TENSOR else _UNKNOWN
        if isinstance(node, ast.NamedExpr):
            return self.of(node.value)
        return _OTHER if isinstance(node, _PLAIN) else _UNKNOWN

    def call(self, node: ast.Call) -> Value:
        answer = self._made(node)
        if answer.kind != UNKNOWN:
            return answer
        function = node.func
        if isinstance(function, ast.Name):
            local = self._local_call(node, function)
            return answer if local.kind == UNKNOWN else local
        if isinstance(function, ast.Attribute) and not answer.name:
            if function.attr in _PLAIN_RESULTS:
                return _OTHER
            holder = self.of(function.value)
            itself = holder.kind in (MODULE, CLASS) and function.attr in _OF_MODULES
            return holder if itself or holder.kind in (TENSOR, MAYBE) else self._module_result(function)
        return answer

    def _made(self, node: ast.expr) -> Value:
        """What a call of a qualified name gives."""
        return _made_by(self.index.qualified_name(node.func)) if isinstance(node, ast.Call) else _UNKNOWN

    def _local_call(self, call: ast.Call, function: ast.Name) -> Value:
        bindings = self.index.bindings(function)
        if not bindings:
            if function.id == "next" and call.args and _gives_tensors(call.args[0]):
                return _TENSOR
            return _OTHER if function.id in _PLAIN_BUILTINS else _UNKNOWN
        for binding in bindings:
            if isinstance(binding.node, FUNCTIONS) and len(bindings) == 1:
                return self.returned(binding.node)
            if isinstance(binding.node, ast.ClassDef):
                return self._of_class(binding.node)
        return _UNKNOWN

    def _of_class(self, owner: ast.ClassDef) -> Value:
        return Value(TENSOR if is_tensor_class(self.index, owner) else CLASS, owner.name)

    def returned(self, function: Function) -> Value:
        """What a function of this file returns: its annotation, or all its return statements."""
        answer = _annotated(function.returns)
        if answer.kind != UNKNOWN:
            return answer
        return _together([self.of(value) for value in returned_values(self.index, function)])

    def _module_result(self, function: ast.Attribute) -> Value:
        """``self.conv(x)``: what a module of torch.nn gives."""
        is_own = isinstance(function.value, ast.Name) and function.value.id == "self"
        owner = self.index.class_of(function) if is_own else None
        if owner is None:
            return _UNKNOWN
        for item in owner.body:
            if isinstance(item, ast.FunctionDef) and item.name == function.attr:
                return self.returned(item)
        made = map(self._made, self.index.stored_as(function))
        parted = ((each.kind, each.name.rpartition(".")[2]) for each in made)
        gives = (kind == MODULE and name not in _TUPLE_MODULES for kind, name in parted)
        return _together(_TENSOR if one_tensor else _UNKNOWN for one_tensor in gives)

    def attribute(self, node: ast.Attribute) -> Value:
        if options_like(node.value):
            return _OTHER
        name = self.index.qualified_name(node)
        if name:
            return _member(name)
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            if self.index.class_of(node) is not None:
                return _together([self.of(value) for value in self.index.stored_as(node)])
        if node.attr in _TENSOR_ATTRIBUTES:
            holder = self.of(node.value)
            return holder if holder.kind in (TENSOR, MAYBE) else _UNKNOWN
        return _OTHER if node.attr in _PLAIN_RESULTS and self.of(node.value).kind == TENSOR else _UNKNOWN

    def name(self, node: ast.Name) -> Value:
        if node.id in ("self", "cls"):
            owner = self.index.class_of(node)
            if owner is not None:
                return self._of_class(owner)
        last = last_assigned(self.index, node, changes=False)
        if last is None or last.value is None or not isinstance(last.node, ast.Assign):
            answer = self._any_of(node)
        else:
            self.index.expand(last.node)
            answer = self.of(last.value)
            if answer.kind == UNKNOWN and isinstance(last.value, ast.Call):
                given = [a for a in last.value.args if isinstance(a, ast.Name) and a.id == node.id]
                if given and self.of(given[0]).kind in (TENSOR, MAYBE):
                    return _MAYBE  # x = self.block(x)
        return _OTHER if answer.kind == UNKNOWN and options_like(node) else answer

    def _any_of(self, node: ast.Name) -> Value:
        """One answer for all that may bind a name. What a parameter is depends on where it is used."""
        bindings = bound(self.index, node, changes=False).bindings
        answers = (self._binding(node, binding) for binding in bindings)
        if not bindings or any(binding.kind == "param" for binding in bindings):
            return _together(answers)
        question = f"what is {node.id}{' here' if self.elsewhere is None else ''}?"
        return self.index.ask(question, bindings[0].node, lambda: _together(answers), _UNKNOWN)

    def _binding(self, node: ast.Name, binding: Binding) -> Value:
        if binding.kind == "import":
            if isinstance(binding.node, ast.Import):
                return Value(OTHER if binding.name.startswith("torch") else FOREIGN, binding.name)
            answer = _member(binding.name)
            return Value(UNKNOWN, binding.name) if answer.kind == FOREIGN else answer
        if isinstance(binding.node, ast.ClassDef):
            return Value(CLASS, binding.node.name)
        if binding.kind == "def":
            return _OTHER
        if binding.kind == "param":
            return self._parameter(node, binding)
        if binding.value is None:
            return self._unpacked(binding)
        self.index.expand(binding.node)
        if isinstance(binding.node, ast.AnnAssign):
            answer = _annotated(binding.node.annotation)
            if answer.kind != UNKNOWN:
                return answer
        if any(isinstance(part, ast.Name) and part.id == node.id for part in ast.walk(binding.value)):
            made = self._made(binding.value)  # x = f(x): what f gives, without asking for x again
            return _SAME if made.kind == UNKNOWN else made
        return self.of(binding.value)

    def _unpacked(self, binding: Binding) -> Value:
        """What a loop gives, or one of several names that a call gives: ``values, places = x.max(1)``."""
        statement = binding.node
        if isinstance(statement, ast.For) and isinstance(statement.target, ast.Name):
            self.index.expand(statement)
            return _TENSOR if _gives_tensors(statement.iter) else _UNKNOWN
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            return _UNKNOWN
        self.index.expand(statement)
        return _TENSOR if self.of(statement.value).kind == TENSOR else _UNKNOWN

    def _parameter(self, node: ast.Name, binding: Binding) -> Value:
        if binding.annotation is not None:
            return _annotated(binding.annotation)
        default = binding.value
        if isinstance(default, ast.Constant) and default.value is not None:
            return _OTHER
        function, owner = self.index.function_of(node), self.index.class_of(node)
        if function is None or owner is None or function.name != "forward" or default is not None:
            return _UNKNOWN
        starred = function.args.vararg, function.args.kwarg
        if not isinstance(binding.node, ast.arg) or binding.node in starred:
            return _UNKNOWN
        self.index.expand(owner)
        names = (self.index.qualified_name(base) or ast.unparse(base) for base in owner.bases)
        is_module = any(name.startswith("torch.nn.") or name.endswith(_MODULE_BASES) for name in names)
        return _TENSOR if is_module else _UNKNOWN


def _gives_tensors(node: ast.expr) -> bool:
    """Whether an iterator is ``model.parameters()`` or ``model.buffers()``, or one made of these."""
    if isinstance(node, ast.Call) and called_name(node) == "iter" and node.args:
        node = node.args[0]
    return isinstance(node, ast.Call) and called_name(node) in ("parameters", "buffers") and not node.args


def _together(answers: Iterable[Value]) -> Value:
    """One answer for everything that may bind a name."""
    known = {answer for answer in answers if answer != _SAME}
    if len(known) == 1:
        return known.pop()
    kinds = {answer.kind for answer in known}
    if len(kinds) == 1:
        return Value(kinds.pop())
    if kinds and all(answer.is_no_tensor for answer in known):
        return _OTHER
    return _MAYBE if kinds & {TENSOR, MAYBE} and kinds <= {TENSOR, MAYBE, UNKNOWN} else _UNKNOWN


def is_class_of_torch(name: str) -> bool:
    """Whether a qualified name is that of a class of torch: a method of it gets the object first."""
    return name.startswith("torch.") and name.rpartition(".")[2][:1].isupper()


def _member(name: str) -> Value:
    """What a qualified name stands for."""
    if name in _TENSOR_CLASSES:
        return Value(TENSOR, name)
    if name.startswith("torch.nn.") and is_class_of_torch(name):
        return Value(MODULE, name)
    if name.startswith("torch."):
        return Value(OTHER, name)
    return Value(UNKNOWN if name.startswith(("torchvision.", ".")) else FOREIGN, name)


def _made_by(name: str) -> Value:
    """What calling a qualified name gives."""
    if not name:
        return _UNKNOWN
    kind, last = UNKNOWN, name.rpartition(".")[2]
    if not name.startswith("torch."):
        # An object that an unknown library made may well be a module or a tensor.
        kind = OTHER if "." in name and name.split(".")[0] in _LIBRARIES else UNKNOWN
    elif name.startswith(_TENSOR_SPACES) or name in _TENSOR_CLASSES or _MAKES_TENSOR.search(name):
        kind = TENSOR
    elif name.count(".") == 1:
        kind = OTHER if last in _NO_TENSOR else TENSOR
    elif name.startswith("torch.nn.") and last[:1].isupper():
        kind = MODULE
    return Value(kind, name)


def _annotated(annotation: ast.expr | None) -> Value:
    if annotation is None:
        return _UNKNOWN
    text = ast.unparse(annotation).strip("'\"")
    if re.search(_TENSOR_TYPES, text):
        return _UNKNOWN if re.match(_CONTAINER_TYPES, text) else Value(TENSOR, "torch.Tensor")
    if re.search(r"\bModule\b", text):
        return Value(MODULE, "torch.nn.Module")
    return _OTHER if re.match(_CLEAR_TYPES, text) else Value(UNKNOWN, text)


# -- whether it is on the CPU, as the expression itself shows, and what was assigned to its name -----


def kept_on_the_cpu(index: ModuleIndex, node: ast.expr, made: bool = False) -> bool:
    """Whether an expression, or what its name was assigned last, was moved to the CPU, or ``made`` there.

    What a name is made of itself, and not moved by, says nothing new: ``x = x.to(memory_format=…)``.
    """
    return index.ask(("kept on the CPU", made), node, lambda: _is_kept(index, node, made), False)


def _is_kept(index: ModuleIndex, node: ast.expr, made: bool) -> bool:
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return kept_on_the_cpu(index, node.value, made)
    if not isinstance(node, ast.Name):
        return isinstance(node, ast.Call) and stays_on_the_cpu(index, node, made)
    last, values = last_assigned(index, node), index.only_assigned(node)
    if last and last.kind == "assign" and last.value and not _is_of_itself(last.value, node.id):
        values = [last.value]
    values = [each for each in values if not _is_of_itself(each, node.id)]
    return bool(values) and all(kept_on_the_cpu(index, each, made) for each in values)


def stays_on_the_cpu(index: ModuleIndex, call: ast.Call, made: bool = True) -> bool:
    """Whether what a function of torch, or a method of a tensor, gives is surely on the CPU."""
    name, method = index.qualified_name(call.func), called_name(call)
    device = argument_of(call, "device", 0 if method in _MOVING and not name else None)
    if device is not None and not re.fullmatch(r"torch\.\w+", index.qualified_name(device)):  # no dtype
        return is_cpu_device(index, device)
    if name in _ON_CPU:  # unless the file gives them another device
        known = made and not any(each in index.text for each in ("set_default_device", "with torch.device"))
        return known and all(keyword.arg for keyword in call.keywords)
    if name:  # it is where its input is
        return made and bool(call.args) and kept_on_the_cpu(index, call.args[0], made)
    holder = None if method in ("cuda", "npu") else holder_of(call)
    return holder is not None and (method == "cpu" or kept_on_the_cpu(index, holder, made))


def is_cpu_device(index: ModuleIndex, device: ast.expr | None) -> bool:
    """Whether a device is written as the CPU: ``"cpu"``, ``torch.device("cpu")``."""
    if isinstance(device, ast.Call) and index.qualified_name(device.func) == "torch.device":
        device = argument_of(device, "type", 0)
    return is_cpu(device)


def _is_of_itself(value: ast.expr, name: str) -> bool:
    """Whether a value is that of a name behind calls of its methods that move nothing."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        moves = value.func.attr in ("cuda", "npu", "cpu", "to_empty")
        if moves or any(keyword.arg in ("device", None) for keyword in value.keywords):
            return False
        if value.func.attr in ("to", "type") and value.args:
            return False
        value = value.func.value
    return isinstance(value, ast.Name) and value.id == name
