from .pairs import PairsData
