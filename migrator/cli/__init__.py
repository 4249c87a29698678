"""The command line: one file a command, and no more in it than what is asked and what is said.

``lint`` and ``api`` read their options with argparse (``own_parser.py``), because a hook runs for each
commit and a person who looks up a name waits: importing typer takes longer than all the rest of such a
run. All other commands are typer's. An option that several of typer's commands have is stated in
``options.py``; what can be said to ``lint``, in ``migrator/lint/option_table.py``, as configuration
files can say it, too.
"""
