"""Changes that are more than a new name: one module each, chosen by the kind of a rule."""
