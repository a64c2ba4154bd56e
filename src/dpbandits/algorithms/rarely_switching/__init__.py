from .imed import RSLinearIMED
from .oful import RSOFUL, AdaCOFUL

__all__ = ["RSOFUL", "AdaCOFUL", "RSLinearIMED"]
