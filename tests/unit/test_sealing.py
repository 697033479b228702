"""Sealing: what opens, and all that must not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noroshi.domain.ids import TenantId
from noroshi.machine.sealing import AesSealer, SealError

OURS, THEIRS = TenantId(1), TenantId(2)
MASTER, NEWER, INDEX_KEY = bytes(32), bytes([1]) * 32, bytes([2]) * 32
ADDRESS = "hanako@example.com"


@pytest.fixture
def sealer() -> AesSealer:
    return AesSealer({1: MASTER}, INDEX_KEY)


@given(user_id=st.text(min_size=1), clear=st.text())
def test_what_is_sealed_opens_again(user_id: str, clear: str) -> None:
    # DESIGN 5.10
    sealer = AesSealer({1: MASTER}, INDEX_KEY)
    key = sealer.new_user_key(OURS, user_id)
    sealed = sealer.seal(key, OURS, user_id, "email", clear)
    assert sealer.open(key, OURS, user_id, "email", sealed) == clear
    if len(clear) > 3:
        assert clear.encode() not in sealed


@pytest.mark.parametrize(
    ("tenant", "user_id", "field"), [(THEIRS, "hanako", "email"), (OURS, "taro", "email"), (OURS, "hanako", "phone")]
)
@pytest.mark.parametrize("is_key_remembered", [True, False])
def test_a_value_opens_for_its_own_tenant_user_and_field_only(
    sealer: AesSealer, tenant: TenantId, user_id: str, field: str, is_key_remembered: bool
) -> None:
    # DESIGN 5.10
    key = sealer.new_user_key(OURS, "hanako")
    sealed = sealer.seal(key, OURS, "hanako", "email", ADDRESS)
    reader = sealer if is_key_remembered else AesSealer({1: MASTER}, INDEX_KEY)
    with pytest.raises(SealError):
        reader.open(key, tenant, user_id, field, sealed)


def test_nobody_seals_with_another_persons_key(sealer: AesSealer) -> None:
    key = sealer.new_user_key(OURS, "hanako")
    sealer.seal(key, OURS, "hanako", "email", ADDRESS)
    with pytest.raises(SealError):
        sealer.seal(key, OURS, "taro", "email", ADDRESS)


@pytest.mark.parametrize("damaged", [b"", b"short", bytes(80)])
def test_damage_is_an_error_that_shows_no_value(sealer: AesSealer, damaged: bytes) -> None:
    # I12
    key = sealer.new_user_key(OURS, "hanako")
    with pytest.raises(SealError) as caught:
        sealer.open(key, OURS, "hanako", "email", damaged)
    assert "hanako" not in str(caught.value)
    with pytest.raises(SealError):
        sealer.open(damaged, OURS, "hanako", "email", sealer.seal(key, OURS, "hanako", "email", ADDRESS))


def test_after_a_rotation_old_keys_open_and_new_ones_are_closed_by_the_new_master(sealer: AesSealer) -> None:
    rotated = AesSealer({1: MASTER, 2: NEWER}, INDEX_KEY)
    old_key = sealer.new_user_key(OURS, "hanako")
    sealed = sealer.seal(old_key, OURS, "hanako", "email", ADDRESS)
    assert rotated.open(old_key, OURS, "hanako", "email", sealed) == ADDRESS
    new_key = rotated.new_user_key(OURS, "taro")
    with pytest.raises(SealError, match="does not have"):
        sealer.seal(new_key, OURS, "taro", "email", ADDRESS)


def test_sealing_twice_gives_different_bytes(sealer: AesSealer) -> None:
    key = sealer.new_user_key(OURS, "hanako")
    assert sealer.seal(key, OURS, "hanako", "email", ADDRESS) != sealer.seal(key, OURS, "hanako", "email", ADDRESS)


def test_the_blind_index_is_the_same_for_the_same_address_of_one_tenant_and_kind(sealer: AesSealer) -> None:
    # DESIGN 5.10
    found = sealer.blind_index(OURS, "email", ADDRESS)
    assert len(found) == 16
    assert found == AesSealer({1: NEWER}, INDEX_KEY).blind_index(OURS, "email", ADDRESS)
    others = {
        sealer.blind_index(THEIRS, "email", ADDRESS),
        sealer.blind_index(OURS, "phone", ADDRESS),
        sealer.blind_index(OURS, "email", "taro@example.com"),
        AesSealer({1: MASTER}, MASTER).blind_index(OURS, "email", ADDRESS),
    }
    assert len(others | {found}) == 5
