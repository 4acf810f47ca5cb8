"""The qgpu machine: instructions, encodings, token vocabulary, reference interpreter."""

from qgpu_isa import instructions
from qgpu_isa.instruction import INSTRUCTIONS, Instruction, Slot
from qgpu_isa.interpreter import Launch, Machine, StepRecord, launch_tokens, run_launch
from qgpu_isa.machine_config import DEFAULT, NANO, PROFILES, SMALL, MachineConfig, profile
from qgpu_isa.program import Block, Branch, ProgramImage, SlotCode
from qgpu_isa.vocabulary import Token, TokenClass, Vocabulary, vocabulary

__all__ = [
    "DEFAULT",
    "INSTRUCTIONS",
    "NANO",
    "PROFILES",
    "SMALL",
    "Block",
    "Branch",
    "Instruction",
    "Launch",
    "Machine",
    "MachineConfig",
    "ProgramImage",
    "Slot",
    "SlotCode",
    "StepRecord",
    "Token",
    "TokenClass",
    "Vocabulary",
    "instructions",
    "launch_tokens",
    "profile",
    "run_launch",
    "vocabulary",
]
