"""Models: what is left after learning, and all that prediction and inspection need."""

from lokl.models.base import Model, Support
from lokl.models.machine import GatedMachine
from lokl.models.success import RegressedSuccess
from lokl.models.trusted_vote import TrustedExpert, TrustedVote
from lokl.models.vote import Expert, Vote

__all__ = [
    "Expert",
    "GatedMachine",
    "Model",
    "RegressedSuccess",
    "Support",
    "TrustedExpert",
    "TrustedVote",
    "Vote",
]
