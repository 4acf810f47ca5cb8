"""What the panel shows is the machine's state: compared with the reference interpreter's, token by
token, for random programs and for every kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qgpu_isa.interpreter import Launch, Machine
from qgpu_isa.machine_config import DEFAULT, NANO, PROFILES, SMALL
from qgpu_isa.testing import launches, random_launch
from qgpu_isa.vocabulary import TokenClass
from qgpu_ptx.launch_options import LaunchOptions
from qgpu_run.kernel_to_launch import kernel_to_request
from qgpu_run.launch import cta_setup, shared_setup
from qgpu_run.panel.machine_view import Doing, MachineView

KERNELS = Path(__file__).resolve().parents[3] / "kernels"
SOURCES = sorted(KERNELS.glob("*/*.ptx"))


class Follower:
    """A view that is fed what a model would write, next to the interpreter that writes it.

    Attributes:
        certain, places: lanes of which the view knows the place, and all.
    """

    def __init__(self, launch: Launch) -> None:
        self.machine = Machine(launch)
        self.view = MachineView(launch.config)
        self.certain = self.places = 0

    def run(self, *, every: int = 1, limit: int = 3000) -> None:
        """Feeds the launch and compares behind every `every`-th token of each kind of place."""
        launch, view = self.machine.launch, self.view
        encode = self.machine.vocab.encode
        for token in shared_setup(launch):
            view.take_setup(token)
        assert view.memory == self.machine.state.memory
        for cta in range(launch.ctas):
            for token in cta_setup(launch, cta):
                view.take_setup(token)
            self.machine.start_cta(cta)
            for step in self.machine.decode(cta):
                words = self.machine.state.memory
                view.take_memory({a: w for a, w in enumerate(words) if w != view.memory[a]})
                note = view.take(encode(step.token))
                assert note.run is not None
                at = (note.cta, note.run.block, note.run.pass_, note.slot)
                assert at == (step.cta, view.run.block, view.run.pass_, step.slot)
                if step.token.cls is TokenClass.EXEC:
                    assert (view.run.block, view.run.pass_) == (step.block, step.pass_)
                    assert view.run.mask == step.mask
                    self.compare_scheduler()
                if step.token.cls is TokenClass.FAULT:
                    assert view.fault == step.token.values[0]
                    return
                if view.decoded % every == 0 or step.token.cls is TokenClass.END:
                    self.compare()
                if view.decoded >= limit:
                    return
            self.compare_scheduler()

    def compare(self) -> None:
        """Registers, predicates, memory; where lanes are."""
        state, view = self.machine.state, self.view
        assert view.strange == 0
        assert view.memory == state.memory
        assert view.predicates == state.predicates
        # The interpreter writes a register when its record begins, a view when it is complete.
        for g, rows in enumerate(state.registers):
            if not (view.sending is not None and g == view.run.pass_):
                assert [list(row) for row in view.registers[g]] == rows
        for g, own in enumerate(view.passes):
            for lane, places in enumerate(own.lanes):
                assert (state.pcs[g][lane], state.statuses[g][lane]) in places
                self.places += 1
                self.certain += len(places) == 1

    def compare_scheduler(self) -> None:
        """What the interpreter keeps of each pass, once it has chosen the next."""
        state, view = self.machine.state, self.view
        assert [own.flag for own in view.passes] == state.flags
        assert [own.stopped_at for own in view.passes] == state.stopped_at
        running = [g for g in range(view.config.passes) if view.doing(g) is Doing.RUNS]
        assert running == ([view.run.pass_] if view.cta_runs else [])


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([NANO, SMALL]).flatmap(launches))
def test_the_view_is_the_machine(launch: Launch) -> None:
    Follower(launch).run()


def test_long_random_programs() -> None:
    for config in PROFILES.values():
        for seed in range(6):
            launch = random_launch(config, seed, max_tokens=400)
            follower = Follower(launch)
            follower.run(every=7)
            assert follower.view.decoded > 0


QUICK = SOURCES[::6]


@pytest.mark.parametrize(
    "source",
    [s if s in QUICK else pytest.param(s, marks=pytest.mark.slow) for s in SOURCES],
    ids=[path.stem for path in SOURCES],
)
def test_the_view_of_every_kernel(source: Path) -> None:
    request = kernel_to_request(source, LaunchOptions(None, None, None, None, ()), DEFAULT)
    follower = Follower(request.launch)
    follower.run(every=61, limit=1500)
    # Nearly always tokens tell where a lane is.
    assert follower.certain >= 0.9 * follower.places
    copy = follower.view.copy()
    assert copy == follower.view
    assert copy.registers is not follower.view.registers
