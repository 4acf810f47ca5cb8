"""The recorder of the demo: steps, the recorded terminal, pictures."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

Image = pytest.importorskip("PIL.Image", reason="the group demo is not installed")
pytest.importorskip("matplotlib", reason="the group demo is not installed")

from demo_pictures import write_film, write_gif  # noqa: E402
from demo_terminal import Cell, DemoError, Frame, Terminal  # noqa: E402
from record_demo import PICTURE, STEPS, main, read_steps, record  # noqa: E402

from click.testing import CliRunner  # noqa: E402  # isort: skip

STEP_FILE = """
size = [40, 6]
typing = 0.005
timeout = 20

[[step]]
type = "printf '\\\\033[38;2;255;0;0mred\\\\033[0m\\\\n'"
wait = "^red"
pause = 0.1

[[step]]
size = [30, 8]
type = "stty size"
wait = "^8 30"
pause = 0.1

[[step]]
type = "cat"
keys = ["enter", "x", "enter", "ctrl-d"]
wait = "x\\nx"
pause = 0.1
"""


@pytest.fixture
def steps(tmp_path: Path) -> Path:
    path = tmp_path / "steps.toml"
    path.write_text(STEP_FILE)
    return path


@pytest.fixture
def frames() -> list[Frame]:
    """Three small screens, in colours."""
    texts = (("a ", "  "), ("ab", "  "), ("ab", "c "))
    return [
        Frame(
            tuple(tuple(Cell(c, "ff0000", "default", False) for c in row) for row in rows),
            (0, 1),
            0.5,
        )
        for rows in texts
    ]


def test_steps_are_recorded(steps: Path, tmp_path: Path) -> None:
    frames = record(read_steps(steps), tmp_path, tmp_path)
    texts = [
        "\n".join("".join(cell.text for cell in row).rstrip() for row in frame.rows)
        for frame in frames
    ]
    assert texts[0].splitlines()[0] == "$"
    assert any("$ printf" in text for text in texts)
    assert "8 30" in texts[-1]
    assert len(frames[0].rows) == 6
    assert len(frames[-1].rows) == 8
    assert len(frames[-1].rows[0]) == 30
    red = {cell.ink for frame in frames for row in frame.rows for cell in row if cell.text == "e"}
    assert "ff0000" in red
    assert all(a != b for a, b in itertools.pairwise(frames))


def test_the_screen_before_a_program_comes_back(tmp_path: Path) -> None:
    script = (
        "echo before; printf '\\033[?1049h\\033[2J\\033[Hinside'; read; "
        "printf '\\033[?1049lafter\\n'; read"
    )
    command = ["bash", "-c", script]
    with Terminal(command, size=(20, 4), folder=tmp_path, variables={}) as terminal:
        terminal.wait("inside", 20)
        assert "before" not in terminal.text()
        terminal.press("enter")
        terminal.wait("before\nafter", 20)


def test_an_update_is_recorded_whole(tmp_path: Path) -> None:
    script = "printf '\\033[?2026hhalf'; sleep 0.3; printf ' whole\\033[?2026l'; read"
    command = ["bash", "-c", script]
    with Terminal(command, size=(20, 2), folder=tmp_path, variables={}) as terminal:
        terminal.wait("whole", 20)
        terminal.pause(0.1)
        shown = {"".join(cell.text for cell in frame.rows[0]).strip() for frame in terminal.frames}
    assert shown <= {"", "half whole"}


def test_what_does_not_come_up_is_an_error(tmp_path: Path) -> None:
    command = ["bash", "-c", "echo here; read"]
    with Terminal(command, size=(20, 2), folder=tmp_path, variables={}) as terminal:
        with pytest.raises(DemoError, match=r"(?s)'there' did not come up; the screen:.*here"):
            terminal.wait("there", 0.5)
        with pytest.raises(DemoError, match="no key 'hyper'"):
            terminal.press("hyper")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x =", "Invalid value"),
        ("size = [80, 24]", "no \\[\\[step\\]\\]"),
        ("[[step]]\nkey = ['q']", "step 1: no setting 'key'"),
        ("[[step]]\npause = 'long'", "step 1: pause cannot be 'long'"),
        ("[[step]]\nkeys = ['hyper']", "step 1: no key 'hyper'"),
    ],
)
def test_wrong_steps_are_refused(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "steps.toml").write_text(text)
    with pytest.raises(DemoError, match=problem):
        read_steps(tmp_path / "steps.toml")


def test_the_gif_shows_all_frames_in_their_colours(frames: list[Frame], tmp_path: Path) -> None:
    write_gif(frames, tmp_path / "a.gif")
    with Image.open(tmp_path / "a.gif") as gif:
        assert gif.n_frames == 3
        assert gif.info["duration"] == 500
        assert gif.info["loop"] == 0
        colours = {colour for _, colour in gif.convert("RGB").getcolors()}
    assert any(red > 200 and green < 60 for red, green, _ in colours)


def test_the_film_is_written(frames: list[Frame], tmp_path: Path) -> None:
    pytest.importorskip("imageio_ffmpeg", reason="the group demo is not installed")
    write_film(frames, tmp_path / "a.mp4")
    assert (tmp_path / "a.mp4").read_bytes()[4:8] == b"ftyp"


def test_the_command(steps: Path, tmp_path: Path) -> None:
    steps.write_text('[[step]]\ntype = "echo hi"\nwait = "^hi"\npause = 0.1\n')
    gif = tmp_path / "a.gif"
    done = CliRunner().invoke(main, ["--steps", str(steps), "-o", str(gif)])
    assert done.exit_code == 0, done.output
    assert "frames" in done.output
    steps.write_text("[[step]]\nkeys = ['hyper']\n")
    assert "no key 'hyper'" in CliRunner().invoke(main, ["--steps", str(steps)]).output


def test_the_list_of_the_demo_and_its_picture() -> None:
    assert read_steps(STEPS)["step"]
    with Image.open(PICTURE) as gif:
        assert gif.n_frames > 50
    assert PICTURE.stat().st_size < 3e6
