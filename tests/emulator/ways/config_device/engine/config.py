import ast
import runpy
from pathlib import Path


class Config(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    @classmethod
    def fromfile(cls, path):
        values = {k: v for k, v in runpy.run_path(str(path)).items() if not k.startswith("__")}
        base = values.pop("_base_", None)
        merged = cls.fromfile(Path(path).parent / base) if base else cls()
        merged.update({k: cls(v) if isinstance(v, dict) else v for k, v in values.items()})
        return merged

    def merge_from_list(self, options):
        for option in options:
            key, _, value = option.partition("=")
            *parents, last = key.split(".")
            target = self
            for parent in parents:
                target = target[parent]
            try:
                target[last] = ast.literal_eval(value)
            except (SyntaxError, ValueError):
                target[last] = value
