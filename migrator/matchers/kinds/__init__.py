"""One module for each kind of matcher that a rule can have."""
