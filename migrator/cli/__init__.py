"""The command line: one file a command, which holds only its options and its output.

``lint`` and ``api`` read their options with argparse (``own_parser.py``), because a hook runs for each
commit and a person who looks up a name waits: importing typer takes longer than all the rest of such a
run. All other commands are typer's. What can be said to any of them is in one table,
``reports/options.json``; a command's function has the type and the default of each of its options.
"""
