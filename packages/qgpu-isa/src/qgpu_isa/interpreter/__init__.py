"""The reference interpreter: what the weights must reproduce, token for token."""

from qgpu_isa.interpreter.machine import Launch, Machine, StepRecord, launch_tokens, run_launch

__all__ = ["Launch", "Machine", "StepRecord", "launch_tokens", "run_launch"]
