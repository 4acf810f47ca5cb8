"""Arrays read back out of words of memory."""

from __future__ import annotations

from qgpu_run.launch_request import OutputArray


def test_arrays_are_read_as_cuda_wrote_them() -> None:
    memory = [0, 0x8001_02FF, 0xFFFF_FFFE, 0xFFFF_FFFF]
    assert OutputArray("x", "u8", 4, 4).read(memory) == [255, 2, 1, 128]
    assert OutputArray("x", "s8", 5, 3).read(memory) == [2, 1, -128]
    assert OutputArray("x", "s16", 6, 2).read(memory) == [-32767, -2]
    assert OutputArray("x", "s64", 8, 1).read(memory) == [-2]
    assert OutputArray("x", "u32", 8, 1).read(memory) == [0xFFFF_FFFE]
    assert OutputArray("x", "u32", 8, 0).read(memory) == []
