"""Where the code of each kind of rule is, and of each handler of structural rules.

A file needs few of the handlers, and only those are imported.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Callable, Literal, NamedTuple, get_args

if TYPE_CHECKING:
    from migrator.matchers.packs import Options


class Finder(NamedTuple):
    """A function in a module of this package, and what its rules are about.

    Rules start from the last parts of their ``match``, or from the words that ``words_from`` names. One
    without ``takes_match`` does not look at that. What ``goes_by`` names finds nothing but qualified
    names and members, what goes by packages nothing without an import of one, what goes by modules
    nothing but members of these under their usual names: ``np.float``. ``replaces`` says what it does
    with ``replace``. ``other``: it looks at files that are no Python, and only at these.
    ``asks_project``: the options say by ``words_in`` what the project adds to the words; those of others
    need not be read for that. ``settled``: what fixes write has none of it, so it need not be looked for
    there. ``needs_npu``: its fixes need ``import torch_npu``, if neither the rule nor the place says
    otherwise. ``only_imports``: that is all they write, so they are moot where other fixes bring it.
    """

    module: str
    function: str = "find"
    words_from: str = ""
    takes_match: bool = True
    goes_by: Literal["", "names", "packages", "modules"] = ""
    replaces: Literal["no", "may", "must"] = "no"
    other: bool = False
    asks_project: bool = False
    settled: bool = False
    needs_npu: bool = True
    only_imports: bool = False

    @property
    def code(self) -> Callable[..., Any]:
        """The function."""
        return _imported(self.module, self.function)

    @property
    def declared(self) -> type[Options]:
        """The dataclass of the options: that of the rules which the function takes."""
        return _options_of(self.code if self.module else None)


@cache
def _imported(module: str, name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(import_module(f"migrator.matchers.{module}"), name)
    return found


@cache
def _options_of(function: Callable[..., Any] | None) -> type[Options]:
    """``SliceOptions`` of ``find(context, rule: Rule[SliceOptions])``, or of a list of such rules."""
    from migrator.matchers.packs import Options  # which asks this module for finders

    if function is None:
        return Options
    _, rules, *_ = function.__annotations__.values()
    taken = eval(rules, function.__globals__)  # nosec B307: an annotation of our own finders
    while parameters := get_args(taken):
        taken = parameters[-1]
    return taken if issubclass(taken, Options) else Options


QUERY = "query"  # the kind of all rules with ``on``
# Of these rules, by what they look at: names and members are found by what is written there.
ON = {
    **dict.fromkeys(("call", "decorator", "base", "name"), Finder("query.queries", goes_by="names")),
    **dict.fromkeys(("member", "string", "expression"), Finder("query.queries")),
}

KINDS = {
    QUERY: ON["call"],
    "name": Finder("kinds.name", goes_by="names", replaces="may"),
    "import": Finder("kinds.library", goes_by="packages"),
    "method": Finder("kinds.method", "find_methods", replaces="must"),
    "attribute": Finder("kinds.method", "find_attributes", replaces="may"),
    "string": Finder("kinds.string", replaces="may"),
    "env": Finder("kinds.env", words_from="env_vars", takes_match=False, needs_npu=False),
    "pattern": Finder("kinds.pattern", replaces="may"),
    # Of files that are no Python.
    "variable": Finder(
        "kinds.setting", "find_variables", words_from="env_vars", takes_match=False, other=True
    ),
    "setting": Finder("kinds.setting", other=True),
    "program-option": Finder(
        "kinds.setting", "find_program_options", words_from="program_options", takes_match=False, other=True
    ),
    "manifest": Finder("kinds.container", "find_manifests", takes_match=False, other=True),
    "container": Finder("kinds.container", takes_match=False, other=True),
    "command": Finder("kinds.command", other=True),
    "body": Finder("kinds.command", "find_bodies", other=True),
    "mpi-line": Finder("kinds.command", "find_mpi_lines", takes_match=False, other=True),
    "requirement": Finder("kinds.requirement", takes_match=False, other=True),
    "image": Finder("kinds.container", "find_images", takes_match=False, other=True),
}

# Of the rules of kind ``structural``. What has the handler ``none`` is found by another part of npumigrate.
HANDLERS = {
    "none": Finder("", "", takes_match=False, needs_npu=False),
    "api-verdicts": Finder("structural.api_verdicts", words_from="torch_apis", takes_match=False),
    "apex-amp": Finder("structural.apex_amp", goes_by="names"),
    "checkpoint-load": Finder(
        "structural.torch_load", "find_without_place", goes_by="names", needs_npu=False
    ),
    "code-text": Finder("structural.code_text", takes_match=False),
    "command-mention": Finder("structural.command_output", "find_mentions"),
    "command-output": Finder("structural.command_output", "find_runs"),
    "cuda-branch": Finder("structural.cuda_branch", takes_match=False),
    "config-text": Finder("structural.config_text"),
    "cuda-definition": Finder("structural.cuda_definition", needs_npu=False),
    "cuda-extension": Finder("structural.cuda_operators", "find_builds"),
    "cuda-library": Finder("structural.cuda_library"),
    "cuda-operator-use": Finder(
        "structural.cuda_operators", "find_uses", words_from="cuda_operators", takes_match=False
    ),
    "cuda-way": Finder(
        "structural.cuda_branch",
        "find_ways_of_the_cpu",
        words_from="cuda_operators",
        takes_match=False,
        needs_npu=False,
    ),
    "device-before-collective": Finder("structural.device_before_collective"),
    "device-slice": Finder(
        "structural.device_slice", takes_match=False, asks_project=True, settled=True, needs_npu=False
    ),
    "driver-library": Finder("structural.driver_library"),
    "dynamic-batches": Finder("structural.dynamic_shapes", "find_batches"),
    "dynamic-calls": Finder("structural.dynamic_shapes", "find_calls"),
    "dynamic-masks": Finder("structural.dynamic_shapes", "find_masks", takes_match=False),
    "equivalent-function": Finder("structural.equivalent_functions", goes_by="names", needs_npu=False),
    "float64-collective": Finder("structural.float64_collective", goes_by="names", needs_npu=False),
    "float64-handed-over": Finder(
        "structural.float64_collective",
        "find_handed_over",
        words_from="reducers",
        takes_match=False,
        needs_npu=False,
    ),
    "fused-optimizer": Finder("structural.optimizers", "find_fused", needs_npu=False),
    "int-device": Finder("structural.int_device"),
    "library-default": Finder(
        "structural.library_defaults", goes_by="packages", takes_match=False, asks_project=True
    ),
    "library-equivalent": Finder("structural.library_equivalents", goes_by="names", needs_npu=False),
    "moved-value": Finder("structural.moved_value", takes_match=False, needs_npu=False),
    "lightning": Finder("structural.added_imports", "find_lightning", goes_by="names", needs_npu=False),
    "library-function": Finder(
        "structural.library_defaults", "find_functions", words_from="library_functions", takes_match=False
    ),
    "memory-format": Finder("structural.memory_format", goes_by="names", needs_npu=False),
    "replaced-names": Finder("structural.added_imports", "find_early_imports", needs_npu=False),
    "map-location": Finder("structural.torch_load", "find_map_locations", needs_npu=False),
    "numpy-name": Finder("structural.numpy_names", goes_by="modules", needs_npu=False),
    "npu-code": Finder(
        "structural.absent_names",
        "find_of_npus",
        words_from="npu_names",
        takes_match=False,
        settled=True,
        needs_npu=False,
    ),
    "operator-form": Finder(
        "structural.operator_forms", words_from="cuda_operators", takes_match=False, needs_npu=False
    ),
    "optimizer-betas": Finder("structural.optimizers", "find_betas", needs_npu=False),
    "outside-device": Finder(
        "structural.added_imports", "find_outside_devices", needs_npu=False, only_imports=True
    ),
    "legacy-function": Finder("structural.old_forms", "find_legacy_functions", goes_by="names"),
    "provider-options": Finder("structural.provider_options", needs_npu=False),
    "python-kernel": Finder("structural.cuda_operators", "find_kernels"),
    "release-names": Finder(
        "structural.absent_names", words_from="torch_names", takes_match=False, needs_npu=False
    ),
    "started-script": Finder("structural.started_script", needs_npu=False),
    "tensor-type-default": Finder("structural.tensor_type_default"),
    "tensor-type-constructors": Finder(
        "structural.tensor_type_default", "find_constructors", words_from="legacy_constructors"
    ),
    "tensor-type-modules": Finder("structural.tensor_type_default", "find_modules"),
    "setup-packages": Finder("kinds.requirement", "find_in_setup", takes_match=False),
    "training-settings": Finder("structural.training_step", "find_settings", words_from="training_loops"),
    "weights-only": Finder("structural.torch_load", "find_without_pickle", goes_by="names", needs_npu=False),
    "training-step": Finder("structural.training_step", words_from="training_loops"),
}
