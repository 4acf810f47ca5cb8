"""The reference interpreter: what the weights must reproduce, token for token."""

from qgpu_isa.interpreter.ctas_apart import (
    CtaEffects,
    CtaRun,
    Dependence,
    dependences,
    run_ctas_apart,
    run_some_apart,
    up_to_fault,
)
from qgpu_isa.interpreter.machine import Launch, Machine, StepRecord, launch_tokens, run_launch

__all__ = [
    "CtaEffects",
    "CtaRun",
    "Dependence",
    "Launch",
    "Machine",
    "StepRecord",
    "dependences",
    "launch_tokens",
    "run_ctas_apart",
    "run_launch",
    "run_some_apart",
    "up_to_fault",
]
