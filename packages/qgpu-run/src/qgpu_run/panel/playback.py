"""Which token is shown: pause, steps and speed, over a recording that may still grow."""

from __future__ import annotations

from qgpu_run.panel.events import FREE, PanelFeed
from qgpu_run.panel.recording import Recording

SPEEDS: tuple[float | None, ...] = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, None)
"""Tokens a second; None is as fast as it goes."""


class Playback:
    """Moves a recording's view, and tells the feed how far the model may go.

    The model goes no further than what is to be shown, so a pause stops it.

    Attributes:
        playing: whether time moves on by itself.
        speed: index into `SPEEDS`.
    """

    def __init__(self, feed: PanelFeed | None = None, *, playing: bool = True) -> None:
        self.feed = feed
        self.recording: Recording | None = None
        self.playing = playing
        self.speed = len(SPEEDS) - 1
        self._wanted: int = FREE if playing else 0
        self._budget = 0.0
        self._seeks_block = False
        self._allow()

    @property
    def tokens_per_second(self) -> float | None:
        """The chosen speed, None for as fast as it goes."""
        return SPEEDS[self.speed]

    @property
    def steps(self) -> bool:
        """Whether a step is under way that the model has not finished."""
        shown = 0 if self.recording is None else self.recording.position
        return not self.playing and (self._seeks_block or self._wanted > shown)

    def begin(self, recording: Recording) -> None:
        """A launch begins."""
        self.recording = recording
        self._wanted = FREE if self.playing else 0
        self._budget, self._seeks_block = 0.0, False
        self._allow()

    def play(self) -> None:
        """Goes on from where the view is."""
        self.playing, self._seeks_block, self._budget = True, False, 0.0
        if self.tokens_per_second is None:
            self._wanted = FREE
        elif self.recording is not None:
            self._wanted = self.recording.position
        self._allow()

    def pause(self) -> None:
        """Stays where the view is."""
        self.playing = self._seeks_block = False
        self._wanted = 0 if self.recording is None else self.recording.position
        self._allow()

    def toggle(self) -> None:
        """Plays or pauses."""
        if self.playing:
            self.pause()
        else:
            self.play()

    def faster(self, by: int) -> None:
        """Chooses another speed."""
        self.speed = max(0, min(self.speed + by, len(SPEEDS) - 1))
        if self.playing:
            self.play()

    def step(self, by: int) -> None:
        """Pauses and moves by tokens, back too."""
        if self.recording is None:
            return
        shown = self._target() if self.steps else self.recording.position
        self.pause()
        self.go_to(shown + by)

    def step_block(self, by: int) -> None:
        """Pauses and moves to the next EXEC, or to the one before."""
        recording = self.recording
        if recording is None:
            return
        self.pause()
        if by < 0:
            self.go_to(recording.block_before(recording.position))
            return
        found = recording.block_after(recording.position)
        if found is None and not recording.ended:
            self._seeks_block, self._wanted = True, FREE
            self._allow()
        else:
            self.go_to(recording.head if found is None else found)

    def go_to(self, position: int) -> None:
        """Pauses and moves to a token; the model goes on if it has not got there."""
        if self.recording is None:
            return
        if self.playing:
            self.pause()
        self._wanted = max(0, position)
        if self.recording.ended:
            self._wanted = min(self._wanted, self.recording.head)
        self._allow()
        self.tick(0.0)

    def _target(self) -> int:
        recording = self.recording
        assert recording is not None
        return recording.position if self._seeks_block else self._wanted

    def tick(self, seconds: float, most: int = FREE) -> bool:
        """Lets time pass; whether the view has moved.

        Args:
            most: tokens by which the view may move at once.
        """
        recording = self.recording
        if recording is None:
            return False
        before, known = recording.position, recording.at_head
        speed = self.tokens_per_second
        if self.playing and speed is not None:
            # What the model has not done in time is not made up for.
            self._budget = min(self._budget + seconds * speed, 1 + seconds * speed)
            whole = int(self._budget)
            self._budget -= whole
            self._wanted = min(before + whole, recording.head + max(whole, 1))
            self._allow()
        if self._seeks_block:
            found = recording.block_after(before)
            if found is not None:
                self._seeks_block, self._wanted = False, found
            elif recording.ended:
                self._seeks_block, self._wanted = False, recording.head
        if not known or self._wanted != before:
            recording.seek(min(self._wanted, max(before, 0) + most))
        if not self.playing and not self._seeks_block and recording.ended:
            self._wanted = min(self._wanted, recording.head)
        return recording.position != before or not known

    def _allow(self) -> None:
        if self.feed is None:
            return
        if self._seeks_block:
            self.feed.allow(to_block=True)
        else:
            self.feed.allow(self._wanted)
