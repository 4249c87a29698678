"""Repairs a migrated program by what its runs show: ``verify --repair``."""
