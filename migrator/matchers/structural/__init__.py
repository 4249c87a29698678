"""Changes that are more than a new name: one module each, chosen by a rule's option ``handler``."""
