"""The older launcher: wants --use_env, and gives the ranks no session of their own."""

import importlib.util
import pathlib

# Loaded from its file: a torch that has only this launcher has no torch.distributed.run.
_spec = importlib.util.spec_from_file_location("_run", pathlib.Path(__file__).with_name("_run.py"))
_run = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_run)

if __name__ == "__main__":
    _run.main(new_session=False)
