"""The qgpu machine: instructions, encodings, token vocabulary, reference interpreter."""

from qgpu_isa import instructions
from qgpu_isa.instruction import INSTRUCTIONS, Instruction, Slot
from qgpu_isa.interpreter import Launch, Machine, StepRecord, launch_tokens, run_launch
from qgpu_isa.machine_config import DEFAULT, NANO, PROFILES, SMALL, MachineConfig, profile
from qgpu_isa.program import Block, Branch, ProgramImage, SlotCode
from qgpu_isa.program_json import image_to_json, json_to_image
from qgpu_isa.program_text import image_to_text, text_to_image
from qgpu_isa.random_programs import random_launch
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
    "image_to_json",
    "image_to_text",
    "instructions",
    "json_to_image",
    "launch_tokens",
    "profile",
    "random_launch",
    "run_launch",
    "text_to_image",
    "vocabulary",
]
