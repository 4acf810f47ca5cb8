"""The naive lowering against counts made by hand."""

import pytest
from qgpu_isa.baseline import (
    BaselineBlock,
    BaselineOp,
    GroupRun,
    OpKind,
    baseline_steps,
    baseline_tokens,
    group_runs,
)


def op(kind: str, writes: str = "", reads: str = "") -> BaselineOp:
    return BaselineOp(OpKind(kind), tuple(reads.split()), tuple(writes.split()))


VECTOR_ADD = [
    BaselineBlock(
        (
            op("alu", "i", ""),  # step 1: i = tid
            op("alu", "p", "i"),  #         p = i >= n
            op("branch", "", "p"),  #       if p leave; live-out: i            -> 1 + 8 = 9
        ),
        (2, 1),
    ),
    BaselineBlock(
        (
            op("alu", "o", "i"),  # step 2: o = 4 * i
            op("alu", "pa", "o"),  #        pa = a + o
            op("load", "x", "pa"),  #       load; live-outs: o, x              -> 1 + 16 = 17
            op("alu", "pb", "o"),  # step 3: pb = b + o
            op("load", "y", "pb"),  #       load; live-out: y                  -> 1 + 8 = 9
            op("alu", "z", "x y"),  # step 4: z = x + y
            op("alu", "pc", "o"),  #        pc = c + o
            op("store", "", "pc z"),  #     store; no live-outs                -> 1
        ),
        (2,),
    ),
    BaselineBlock((op("branch"),)),  # step 5: leave                           -> 1
]


def test_vector_add() -> None:
    # 6 threads, n = 6: group 0 has 4 lanes, group 1 has 2; all run all blocks once.
    # A group: 9 + (17 + 9 + 1) + 1 = 37 tokens, two groups 74; 6 words stored: 18.
    runs = group_runs([(1, 1, 1)] * 6, [1] * 6)
    assert runs == (GroupRun((1, 1, 1), 4), GroupRun((1, 1, 1), 2))
    assert [sorted(step.live_outs) for step in baseline_steps(VECTOR_ADD)] == [
        ["i"],
        ["o", "x"],
        ["y"],
        [],
        [],
    ]
    assert baseline_tokens(VECTOR_ADD, runs) == 2 * 37 + 18


DOT_PRODUCT = [
    BaselineBlock(
        (
            op("alu", "i", ""),  # step 1: i = tid
            op("alu", "s", ""),  #         s = 0; live-outs: i, s              -> 1 + 16 = 17
        ),
        (1,),
    ),
    BaselineBlock(
        (
            op("alu", "o", "i"),  # step 2: o = 4 * i
            op("alu", "pa", "o"),  #        pa = a + o
            op("load", "x", "pa"),  #       load; live-outs: o, x              -> 17
            op("alu", "pb", "o"),  # step 3: pb = b + o
            op("load", "y", "pb"),  #       load; live-out: y                  -> 9
            op("alu", "m", "x y"),  # step 4: m = x * y
            op("alu", "s", "s m"),  #       s += m
            op("alu", "i", "i"),  #         i += 4
            op("alu", "p", "i"),  #         p = i < n: the fourth instruction
            #                               live-outs: s, i, p                 -> 1 + 24 = 25
            op("branch", "", "p"),  # step 5: if p repeat                      -> 1
        ),
        (1, 2),
    ),
    BaselineBlock(
        (
            op("alu", "pr", ""),  # step 6: pr = r
            op("atomic", "", "pr s"),  #    add s to it                        -> 1
            op("branch"),  # step 7: leave                                     -> 1
        ),
    ),
]


def test_dot_product_with_a_loop() -> None:
    # One group of 4 threads, n = 10: threads 0 and 1 run the loop 3 times, 2 and 3 twice, so the
    # group 3 times. 17 + 3 * (17 + 9 + 25 + 1) + 2 = 175; each of 4 atomics stores a word: 12.
    runs = group_runs([(1, 3, 1)] * 2 + [(1, 2, 1)] * 2, [1] * 4)
    assert runs == (GroupRun((1, 3, 1), 4),)
    assert baseline_tokens(DOT_PRODUCT, runs) == 175 + 12


TREE_REDUCTION = [
    BaselineBlock(
        (
            op("alu", "o", ""),  # step 1: o = 4 * tid
            op("load", "x", "o"),  #       load; live-outs: o, x               -> 17
            op("alu", "q", "o"),  # step 2: q = shared + o
            op("store", "", "q x"),  #     store; live-out: q                  -> 9
            op("alu", "h", ""),  # step 3: h = 4
            op("barrier"),  #              barrier; live-out: h                -> 9
        ),
        (1,),
    ),
    BaselineBlock(
        (
            op("alu", "p", "o h"),  # step 4: p = o >= 4 * h
            op("branch", "", "p"),  #       if p skip                          -> 1
        ),
        (3, 2),
    ),
    BaselineBlock(
        (
            op("alu", "t", "h"),  # step 5: t = 4 * h
            op("alu", "t", "t q"),  #       t += q
            op("load", "y", "t"),  #        load; live-out: y                  -> 9
            op("load", "z", "q"),  # step 6: load; live-out: z                 -> 9
            op("alu", "z", "z y"),  # step 7: z += y
            op("store", "", "q z"),  #      store                              -> 1
        ),
        (3,),
    ),
    BaselineBlock(
        (
            op("barrier"),  # step 8: barrier                                  -> 1
            op("alu", "h", "h"),  # step 9: h /= 2
            op("alu", "p", "h"),  #         p = h > 0
            op("branch", "", "p"),  #       if p repeat; live-out: h           -> 9
        ),
        (1, 4),
    ),
    BaselineBlock((op("branch"),)),  # step 10: leave                          -> 1
]


def test_tree_reduction_with_barriers() -> None:
    # 8 threads, h = 4, 2, 1: three rounds. Threads 0-3, 0-1 and 0 add, so group 0 runs the adding
    # block 3 times and group 1 never; every thread stores once first, then 4 + 2 + 1 times.
    # Both groups: 17 + 9 + 9 = 35, then 3 * (1 + 1 + 9) = 33, then 1: 69. Group 0 also
    # 3 * (9 + 9 + 1) = 57. Words: 8 + 7 = 15, 45 tokens.
    adds = [3, 2, 1, 1, 0, 0, 0, 0]
    threads = [(1, 3, n, 3, 1) for n in adds]
    runs = group_runs(threads, [1 + n for n in adds])
    assert runs == (GroupRun((1, 3, 3, 3, 1), 11), GroupRun((1, 3, 0, 3, 1), 4))
    assert baseline_tokens(TREE_REDUCTION, runs) == 2 * 69 + 57 + 45


def test_five_instructions_make_two_steps_and_a_guarded_write_keeps_the_old_value() -> None:
    blocks = [
        BaselineBlock((*(op("alu", "x") for _ in range(4)), op("alu", "x", "x p")), (1,)),
        BaselineBlock((op("store", "", "x"),)),
    ]
    assert [(len(s.ops), sorted(s.live_outs)) for s in baseline_steps(blocks)] == [
        (4, ["x"]),
        (1, ["x"]),
        (1, []),
    ]


def test_no_instructions_cost_nothing() -> None:
    assert baseline_tokens([BaselineBlock((), ())], [GroupRun((7,))]) == 0


def test_wrong_input_is_refused() -> None:
    with pytest.raises(ValueError, match="no block"):
        baseline_tokens([BaselineBlock((), (1,))], [])
    with pytest.raises(ValueError, match="argument"):
        baseline_tokens([BaselineBlock(())], [GroupRun((1, 2))])
