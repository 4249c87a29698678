"""The language of rules that say ``on`` what, ``where`` and ``do``: see docs/rule_format.md."""
