"""API keys: their form, their checksum, their digest (RELIABILITY 5.2)."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noroshi.domain.api_keys import KEY_BITS, digest, is_well_formed, key_id, mint

BASE62 = string.digits + string.ascii_letters
KEY = mint(123456789 << 130)


@given(st.integers(0, 2**KEY_BITS - 1))
def test_a_minted_key_has_the_documented_form(bits: int) -> None:
    key = mint(bits)
    assert key.startswith("nrs_")
    assert len(key) == 4 + 30 + 6
    assert set(key[4:]) <= set(BASE62)
    assert is_well_formed(key)
    assert key_id(key) == key[4:12]


@given(st.integers(4, 39), st.sampled_from(BASE62))
def test_one_mistyped_character_is_noticed(place: int, character: str) -> None:
    typed = KEY[:place] + character + KEY[place + 1 :]
    assert is_well_formed(typed) == (typed == KEY)


@pytest.mark.parametrize("text", ["", "nrs_", KEY[:-1], KEY + "0", KEY.replace("nrs_", "NRS_"), KEY + "\n", " " + KEY])
def test_what_is_no_key_is_refused(text: str) -> None:
    assert not is_well_formed(text)


def test_different_bits_give_different_keys() -> None:
    assert len({mint(bits) for bits in range(1000)}) == 1000


def test_the_digest_depends_on_the_pepper_and_the_key() -> None:
    assert len(digest(b"a", KEY)) == 32
    assert len({digest(b"a", KEY), digest(b"b", KEY), digest(b"a", mint(5))}) == 3
