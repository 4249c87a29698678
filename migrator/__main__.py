"""``python -m migrator``: the command line."""

import sys

if __name__ == "__main__":
    # Python looks for modules in the current folder first, which may be the project to look at: nothing of it
    # may be imported, not even a __future__.py. Only a checkout of npumigrate needs the folder.
    own = __file__.replace("\\", "/").rsplit("/", 2)[0]
    if not getattr(sys.flags, "safe_path", False) and sys.path[0].replace("\\", "/") != own:
        del sys.path[0]

    from migrator.cli.start import main

    main()
