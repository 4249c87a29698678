"""Where the code of each kind of rule is. A file needs few of the kinds, and only their code is imported."""

from __future__ import annotations

from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Callable, Literal, get_args

from migrator.light import NamedTuple

if TYPE_CHECKING:
    from migrator.matchers.packs import Options


class Finder(NamedTuple):
    """A function in a module of this package, and what its rules are about.

    Rules start from the last parts of their ``match``, or from the words that ``words_from`` names. One
    without ``takes_match`` does not look at that. What ``goes_by`` names finds nothing but qualified
    names and members, what goes by packages nothing without an import of one. ``replaces`` says what it does
    with ``replace``. ``other``: it looks at files other than Python, and only at these.
    ``asks_project``: the options say by ``words_in`` what the project adds to the words; those of others
    need not be read for that. ``settled``: what fixes write has none of it, so it need not be looked for
    there. ``needs_npu``: its fixes need ``import torch_npu``, if neither the rule nor the place says
    otherwise. ``only_imports``: that is all they write, so they are moot where other fixes bring it.
    ``each``: it takes one rule at a time, and its fixes come before those of other kinds.
    """

    module: str
    function: str = "find"
    words_from: str = ""
    takes_match: bool = True
    goes_by: Literal["", "names", "packages"] = ""
    replaces: Literal["no", "may", "must"] = "no"
    other: bool = False
    asks_project: bool = False
    settled: bool = False
    needs_npu: bool = True
    only_imports: bool = False
    each: bool = False

    @property
    def code(self) -> Callable[..., Any]:
        """The function."""
        found: Callable[..., Any] = getattr(import_module(f"migrator.matchers.{self.module}"), self.function)
        return found

    @property
    def declared(self) -> type[Options]:
        """The dataclass of the options: that of the rules which the function takes."""
        return _options_of(self.code if self.module else None)


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
    **dict.fromkeys(("call", "decorator", "base", "name"), Finder("query.uses", goes_by="names")),
    **dict.fromkeys(("member", "string", "expression"), Finder("query.uses")),
}
_other = partial(Finder, takes_match=False, other=True)  # of files other than Python
_each = partial(Finder, each=True)
_no_npu = partial(_each, needs_npu=False)
_no_match = partial(_each, takes_match=False)
_neither = partial(_each, takes_match=False, needs_npu=False)

KINDS = {
    QUERY: ON["call"],
    "name": Finder("kinds.name", goes_by="names", replaces="may"),
    "import": Finder("kinds.library", goes_by="packages"),
    "method": Finder("kinds.method", "find_methods", replaces="must"),
    "attribute": Finder("kinds.method", "find_attributes", replaces="may"),
    "string": Finder("kinds.string", replaces="may"),
    "env": Finder("kinds.env", words_from="env_vars", takes_match=False, needs_npu=False),
    "pattern": Finder("kinds.pattern", replaces="may"),
    "variable": _other("kinds.env", "find_variables", words_from="env_vars"),
    "setting": Finder("kinds.setting", other=True),
    "program-option": _other("kinds.setting", "find_program_options", words_from="program_options"),
    "manifest": _other("kinds.container", "find_manifests"),
    "container": _other("kinds.container"),
    "command": Finder("kinds.command", other=True),
    "body": Finder("kinds.command", "find_bodies", other=True),
    "mpi-line": _other("kinds.command", "find_mpi_lines"),
    "requirement": _other("kinds.requirement"),
    "image": _other("kinds.container", "find_images"),
    # It is found by another part of npumigrate.
    "none": _neither("", ""),
    "api-verdicts": _no_match("structural.api_verdicts", "find_verdicts", words_from="torch_apis"),
    "checkpoint-load": _no_npu("structural.torch_load", "find_without_place", goes_by="names"),
    "code-text": _no_match("structural.other_languages", "find_code"),
    "command-mention": _each("structural.commands", "find_mentions"),
    "command-output": _each("structural.commands", "find_runs"),
    "cuda-branch": _no_match("structural.cuda_operators", "find_branches"),
    "config-text": _each("structural.other_languages", "find_configurations"),
    "cuda-definition": _no_npu("structural.definitions", "find_cuda"),
    "cuda-extension": _each("structural.cuda_operators", "find_builds"),
    "cuda-library": _each("structural.libraries", "find_shared"),
    "cuda-operator-use": _no_match("structural.cuda_operators", "find_uses", words_from="cuda_operators"),
    "cuda-way": _neither("structural.cuda_operators", "find_ways_of_the_cpu", words_from="cuda_operators"),
    "device-before-collective": _each("structural.collectives", "find_before_device"),
    "device-slice": _neither("structural.device_values", "find_slices", asks_project=True, settled=True),
    "dynamic-calls": _each("structural.training", "find_calls"),
    "dynamic-masks": _no_match("structural.training", "find_masks"),
    "equivalent-function": _no_npu("structural.api_verdicts", "find_equivalents", goes_by="names"),
    "float64-collective": _no_npu("structural.collectives", "find_float64", goes_by="names"),
    "float64-handed-over": _neither("structural.collectives", "find_handed_over", words_from="reducers"),
    "fused-optimizer": _no_npu("structural.device_values", "find_fused"),
    "int-device": _each("structural.device_values", "find_integers"),
    "library-default": _no_match(
        "structural.libraries", "find_defaults", goes_by="packages", asks_project=True
    ),
    "library-equivalent": _no_npu("structural.absent_names", "find_of_library", goes_by="names"),
    "moved-value": _neither("kinds.string", "find_moved"),
    "library-function": _no_match("structural.libraries", "find_functions", words_from="library_functions"),
    "replaced-names": _no_npu("structural.added_imports", "find_early_imports"),
    "map-location": _no_npu("structural.torch_load", "find_map_locations"),
    "npu-code": _neither("structural.absent_names", "find_of_npus", words_from="npu_names", settled=True),
    "operator-function": _neither("structural.cuda_operators", "find_replaced", words_from="cuda_operators"),
    "operator-form": _neither("structural.cuda_operators", "find_forms", words_from="cuda_operators"),
    "own-module": _each("structural.added_imports", "find_own_modules", goes_by="names"),
    "optimizer-betas": _no_npu("structural.device_values", "find_betas"),
    "outside-device": _no_npu("structural.added_imports", "find_outside_devices", only_imports=True),
    "legacy-function": _each("structural.definitions", "find_legacy_functions", goes_by="names"),
    "provider-options": _no_npu("structural.libraries", "find_provider_options"),
    "python-kernel": _each("structural.cuda_operators", "find_kernels"),
    "release-names": _neither("structural.absent_names", "find_of_torch", words_from="torch_names"),
    "started-script": _no_npu("structural.other_languages", "find_started"),
    "tensor-type-default": _each("structural.definitions", "find_default_type"),
    "tensor-type-constructors": _each(
        "structural.definitions", "find_constructors", words_from="legacy_constructors"
    ),
    "tensor-type-modules": _each("structural.definitions", "find_modules"),
    "setup-packages": _no_match("kinds.requirement", "find_in_setup"),
    "training-settings": _each("structural.training", "find_settings", words_from="training_loops"),
    "weights-only": _no_npu("structural.torch_load", "find_without_pickle", goes_by="names"),
    "training-step": _each("structural.training", "find_in_steps", words_from="training_loops"),
}
