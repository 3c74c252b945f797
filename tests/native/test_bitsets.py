"""Sets of bits, compared with sets of Python."""

from __future__ import annotations

import random

import numpy as np

from fuseflow.native.bitsets import add, discard, is_member, next_in_word, next_member, word_count
from fuseflow.native.records import address


def test_a_set_has_what_was_put_into_it() -> None:
    source, count = random.Random(1), 100
    words = np.zeros(word_count(count), np.int64)
    members, expected = address(words), set[int]()
    for _ in range(2000):
        number = source.randrange(count)
        if source.random() < 0.5:
            add(members, number)
            expected.add(number)
        else:
            discard(members, number)
            expected.discard(number)
        start = source.randrange(count)
        assert is_member(members, start) == (start in expected)
        assert next_member(members, len(words), start) == min((n for n in expected if n >= start), default=-1)


def test_words_have_32_numbers() -> None:
    assert [word_count(count) for count in (0, 1, 32, 33, 64, 65)] == [1, 1, 1, 2, 2, 3]
    assert [next_in_word(1 << 31 | 1, after) for after in (-1, 0, 30, 31)] == [0, 31, 31, -1]
