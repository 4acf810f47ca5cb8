"""Frames of a terminal as pictures: a GIF, and a film (MP4) where ffmpeg is at hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from demo_terminal import Cell, DemoError, Frame
from PIL import Image, ImageColor, ImageDraw, ImageFont

INK, PAPER = "d8dee9", "101418"
NAMED = {
    "black": "3b4252",
    "red": "e06c75",
    "green": "98c379",
    "brown": "e5c07b",
    "blue": "61afef",
    "magenta": "c678dd",
    "cyan": "56b6c2",
    "white": "d8dee9",
    "brightblack": "6b7484",
    "brightred": "ff7b86",
    "brightgreen": "b5e890",
    "brightbrown": "ffd580",
    "brightblue": "82caff",
    "brightmagenta": "e29cff",
    "brightcyan": "7fdbe8",
    "brightwhite": "ffffff",
}
FONT_SIZE = 13.3
"""DejaVu Sans Mono is 0.602 of its size wide: cells of 8 pixels."""
MARGIN = 12
COLOURS = 256
"""Of a GIF, over all frames."""
FILM_FRAMES_A_SECOND = 10


class Painter:
    """Draws frames in DejaVu Sans Mono, which comes with matplotlib."""

    def __init__(self, columns: int, rows: int) -> None:
        fonts = _font_folder()
        self._fonts = [
            ImageFont.truetype(str(fonts / name), FONT_SIZE)
            for name in ("DejaVuSansMono.ttf", "DejaVuSansMono-Bold.ttf")
        ]
        ascent, descent = self._fonts[0].getmetrics()
        self._cell = round(self._fonts[0].getlength("M")), ascent + descent
        self.size = 2 * MARGIN + columns * self._cell[0], 2 * MARGIN + rows * self._cell[1]
        self._tiles: dict[Cell, Image.Image] = {}

    def paint(self, frame: Frame) -> Image.Image:
        """The picture of a frame."""
        picture = Image.new("RGB", self.size, f"#{PAPER}")
        width, height = self._cell
        for y, row in enumerate(frame.rows):
            for x, cell in enumerate(row):
                if (x, y) == frame.cursor:
                    cell = Cell(cell.text, PAPER, INK, cell.bold)
                if cell.text.strip() or cell.paper != "default":
                    picture.paste(self._tile(cell), (MARGIN + x * width, MARGIN + y * height))
        return picture

    def _tile(self, cell: Cell) -> Image.Image:
        if cell not in self._tiles:
            tile = Image.new("RGB", self._cell, _colour(cell.paper, PAPER))
            ink = _colour(cell.ink, INK)
            ImageDraw.Draw(tile).text((0, 0), cell.text, fill=ink, font=self._fonts[cell.bold])
            self._tiles[cell] = tile
        return self._tiles[cell]


def write_gif(frames: Sequence[Frame], path: Path) -> None:
    """Writes a GIF that runs for ever."""
    painter = Painter(*_largest(frames))
    pictures = [painter.paint(frame) for frame in frames]
    palette = _palette(frames)
    indexed = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    indexed[0].save(
        path,
        format="GIF",
        save_all=True,
        append_images=indexed[1:],
        duration=[max(20, round(frame.seconds * 100) * 10) for frame in frames],
        loop=0,
        optimize=False,
        disposal=1,
    )


def write_film(frames: Sequence[Frame], path: Path) -> None:
    """Writes an MP4.

    Raises:
        DemoError: imageio-ffmpeg is not installed.
    """
    if find_spec("imageio_ffmpeg") is None:
        raise DemoError("imageio-ffmpeg is not installed (uv sync --group demo)")
    import imageio_ffmpeg

    painter = Painter(*_largest(frames))
    width, height = (side + side % 2 for side in painter.size)
    writer = imageio_ffmpeg.write_frames(
        str(path), (width, height), fps=FILM_FRAMES_A_SECOND, macro_block_size=2, quality=8
    )
    writer.send(None)
    for frame, copies in _steady(frames):
        picture = Image.new("RGB", (width, height), f"#{PAPER}")
        picture.paste(painter.paint(frame))
        for _ in range(copies):
            writer.send(picture.tobytes())
    writer.close()


def _steady(frames: Sequence[Frame]) -> Iterator[tuple[Frame, int]]:
    """Each frame with how many of the film's frames it fills."""
    passed, written = 0.0, 0
    for frame in frames:
        passed += frame.seconds
        copies = round(passed * FILM_FRAMES_A_SECOND) - written
        written += copies
        yield frame, copies


def _palette(frames: Sequence[Frame]) -> Image.Image:
    """Colours of all frames: each ink on its paper, and steps between them for soft edges."""
    cells = {cell for frame in frames for row in frame.rows for cell in row}
    pairs = {(_colour(cell.ink, INK), _colour(cell.paper, PAPER)) for cell in cells}
    pairs |= {(f"#{PAPER}", f"#{INK}"), (f"#{INK}", f"#{PAPER}")}
    colours = [colour for pair in sorted(pairs) for colour in pair]
    steps = max(0, (COLOURS - len(set(colours))) // len(pairs))
    colours += [
        _between(pair, (step + 1) / (steps + 1)) for pair in sorted(pairs) for step in range(steps)
    ]
    found = list(dict.fromkeys(colours))[:COLOURS]
    palette = Image.new("P", (1, 1))
    palette.putpalette([value for colour in found for value in ImageColor.getrgb(colour)])
    return palette


def _between(pair: tuple[str, str], share: float) -> str:
    ink, paper = map(ImageColor.getrgb, pair)
    mixed = (round(a + (b - a) * share) for a, b in zip(ink, paper, strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def _largest(frames: Sequence[Frame]) -> tuple[int, int]:
    return max(len(frame.rows[0]) for frame in frames), max(len(frame.rows) for frame in frames)


def _colour(name: str, default: str) -> str:
    return f"#{default if name == 'default' else NAMED.get(name, name)}"


def _font_folder() -> Path:
    found = find_spec("matplotlib")
    if found is None or found.origin is None:
        raise DemoError("matplotlib, whose font is used, is not installed (uv sync --group demo)")
    return Path(found.origin).parent / "mpl-data" / "fonts" / "ttf"
