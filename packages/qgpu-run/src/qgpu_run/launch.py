"""A launch: the host writes setup records, the engine decodes until the end.

The host computes no value and takes no decision: it sends the records of `launch_tokens` and of
`cta_tokens`, then feeds each token that the engine chose back to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qgpu_isa.interpreter import Launch, launch_tokens
from qgpu_isa.interpreter.machine import cta_tokens, init_tokens, pass_mask, start_tokens
from qgpu_isa.vocabulary import Fault, Token, TokenClass, Vocabulary, vocabulary

from qgpu_run.engines.engine import Engine, RowEngine
from qgpu_run.errors import ForeignTokenError, KernelFaultError, RequestError, TokenLimitError

MAX_TOKENS = 100_000

OnToken = Callable[[int, int], None]
"""Called with the CTA and each decoded token, before the token is fed back."""


@dataclass(frozen=True)
class LaunchTrace:
    """The tokens of a launch that ended.

    Attributes:
        setup_tokens: how many tokens the host wrote.
        ctas: the decoded tokens of each CTA, up to and including END.
        min_margin: smallest distance of a chosen token's logit from the second, in bf16 steps.
    """

    setup_tokens: int
    ctas: tuple[tuple[int, ...], ...]
    min_margin: float

    @property
    def decoded_tokens(self) -> int:
        """How many tokens the engine wrote."""
        return sum(len(tokens) for tokens in self.ctas)


def setup_tokens(launch: Launch, cta: int) -> list[int]:
    """The tokens that the host writes before a CTA; before CTA 0, program and memory as well."""
    return (shared_setup(launch) if cta == 0 else []) + cta_setup(launch, cta)


def shared_setup(launch: Launch) -> list[int]:
    """The tokens that load program and memory."""
    encode = vocabulary(launch.config).encode
    return [encode(token) for token in launch_tokens(launch)]


def cta_setup(launch: Launch, cta: int) -> list[int]:
    """The tokens that start a CTA."""
    encode = vocabulary(launch.config).encode
    return [encode(token) for token in cta_tokens(launch.config, launch.threads, cta)]


def init_setup(launch: Launch) -> list[int]:
    """The INIT records, which rows have in common; they then stand before the CTA record."""
    encode = vocabulary(launch.config).encode
    return [encode(token) for token in init_tokens(launch.config, launch.threads)]


def row_setup(launch: Launch, cta: int) -> list[int]:
    """The tokens that start a CTA behind `init_setup`; as many for all CTAs of a launch."""
    encode = vocabulary(launch.config).encode
    return [encode(token) for token in start_tokens(launch.config, cta)]


def run_on_engine(
    launch: Launch,
    engine: Engine,
    *,
    max_tokens: int = MAX_TOKENS,
    on_token: OnToken | None = None,
    setup: Sequence[int] | None = None,
) -> LaunchTrace:
    """Runs a launch to its end.

    Args:
        setup: tokens to read before the first CTA instead of a new stream with program and memory.

    Raises:
        RequestError: the engine is another machine than the launch's.
        TokenLimitError: more than `max_tokens` tokens were decoded.
        KernelFaultError: the kernel faulted; names cause, place and source.
        ForeignTokenError: the engine chose a token that is not the machine's.
    """
    check_machine(launch, engine)
    vocab = vocabulary(launch.config)
    end = vocab.encode(Token(TokenClass.END))
    faults = vocab.range_of(TokenClass.FAULT)
    if setup is None:
        engine.reset()
        setup = shared_setup(launch)
    written = decoded = 0
    margin = float("inf")
    ctas: list[tuple[int, ...]] = []
    carry = list(setup)
    for cta in range(launch.ctas):
        own = cta_setup(launch, cta)
        written += len(own) + (len(setup) if cta == 0 else 0)
        prediction = engine.feed(carry + own)
        tokens: list[int] = []
        while True:
            token, step = prediction
            tokens.append(token)
            decoded += 1
            margin = min(margin, step)
            if on_token is not None:
                on_token(cta, token)
            if token < 0:
                raise ForeignTokenError(
                    f"after {decoded - 1} tokens the model wrote text token {-1 - token}"
                )
            if token == end:
                break
            if token in faults:
                raise KernelFaultError(describe_fault(launch, cta, tokens))
            if decoded >= max_tokens:
                raise TokenLimitError(limit_text(max_tokens))
            prediction = engine.feed([token])
        ctas.append(tuple(tokens))
        carry = [end]
    return LaunchTrace(written, tuple(ctas), margin)


def limit_text(tokens: int) -> str:
    """What to say of a launch that was stopped behind so many tokens."""
    return (
        f"the kernel wrote {tokens} tokens and did not end; "
        "raise --max-tokens if it is not an endless loop"
    )


def check_machine(launch: Launch, engine: Engine | RowEngine) -> None:
    """Raises RequestError when an engine is not the machine that a launch was made for."""
    if engine.config != launch.config:
        raise RequestError(
            f"the program is for machine '{launch.config.name}', "
            f"the model computes machine '{engine.config.name}'"
        )


@dataclass(frozen=True)
class Place:
    """The execution that was running when a token was written."""

    block: int
    pass_: int
    mask: int


def place_of_last(vocab: Vocabulary, launch: Launch, tokens: list[int]) -> Place:
    """The execution that decoded tokens of one CTA end in."""
    config = launch.config
    masks = [pass_mask(config, launch.threads, g) for g in range(config.passes)]
    place = Place(0, 0, masks[0])
    for token_id in tokens[:-1]:
        token = vocab.decode(token_id)
        if token.cls is TokenClass.MASK:
            lanes, g = token.values
            masks[g] = lanes
        elif token.cls is TokenClass.EXEC:
            block, g, _ = token.values
            place = Place(block, g, masks[g])
    return place


FAULT_TEXT = {
    Fault.OUT_OF_RANGE: "memory access out of range",
    Fault.MISALIGNED: "misaligned memory access",
    Fault.TRAP: "trap",
}


def describe_fault(launch: Launch, cta: int, tokens: list[int]) -> str:
    """One message on a CTA's tokens that end in FAULT: cause, place, source lines."""
    vocab = vocabulary(launch.config)
    cause = Fault(vocab.decode(tokens[-1]).values[0])
    place = place_of_last(vocab, launch, tokens)
    lanes = launch.config.lanes
    first = place.pass_ * lanes
    active = [first + i for i in range(lanes) if place.mask >> i & 1]
    lines = [
        f"{launch.image.name}: {FAULT_TEXT[cause]} in block {place.block}, pass {place.pass_}, "
        f"CTA {cta} (threads {', '.join(map(str, active))})"
    ]
    if place.block < len(launch.image.blocks):
        lines += [f"  at {line}" for line in launch.image.blocks[place.block].source]
    return "\n".join(lines)
