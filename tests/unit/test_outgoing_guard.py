"""Where a user may make us call: the public Internet, and no place that only looks like it (RELIABILITY 5.3)."""

import pytest

from noroshi.machine.outgoing.guard import ForbiddenError, Foreign, Guard, is_public

PUBLIC = ["8.8.8.8", "147.92.150.1", "223.255.255.254", "2606:4700::1111", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8"]

PRIVATE = [
    *("0.1.2.3", "10.0.0.1", "10.255.255.255", "127.0.0.1", "127.255.255.254", "169.254.169.254"),
    *("172.16.0.1", "172.31.255.255", "192.168.0.1", "192.0.0.8", "192.0.2.1", "198.18.0.1", "198.19.255.255"),
    *("198.51.100.1", "203.0.113.1", "100.64.0.1", "100.100.100.200", "100.127.255.255", "192.88.99.1"),
    *("168.63.129.16", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254"),
    *("64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "64:ff9b:1::8.8.8.8"),
    *("2002:7f00:1::", "2002:a9fe:a9fe::1", "2001::1", "2001:0:a9fe:a9fe::", "2001:db8::1", "2001:2::1"),
    *("3fff::1", "5f00::1", "fc00::1", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "100::1"),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_may_be_called(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", PRIVATE)
def test_no_other_address_may(address: str) -> None:
    assert not is_public(address)


async def placed(url_parts: Foreign, *found: str) -> str:
    async def resolve(host: str, port: int) -> list[str]:
        return list(found)

    return await Guard(resolve).place_of(url_parts)


def a_place(scheme: str = "https", host: str = "hooks.example", port: int = 443, *, has_user: bool = False) -> Foreign:
    return Foreign(scheme, host, port, has_user)


async def test_a_name_is_called_at_the_address_that_was_looked_at() -> None:
    assert await placed(a_place(), "8.8.8.8", "2606:4700::1111") == "8.8.8.8"


async def test_of_a_name_every_address_must_be_public() -> None:
    with pytest.raises(ForbiddenError):
        await placed(a_place(), "8.8.8.8", "10.0.0.1")


async def test_a_name_without_an_address_is_refused() -> None:
    with pytest.raises(ForbiddenError):
        await placed(a_place())


@pytest.mark.parametrize(
    ("place", "why"),
    [
        (a_place(scheme="http"), "https://"),
        (a_place(scheme="file"), "https://"),
        (a_place(port=22), "port"),
        (a_place(port=6379), "port"),
        (a_place(has_user=True), "user"),
        (a_place(host="127.0.0.1"), "public Internet"),
        (a_place(host="::1"), "public Internet"),
    ],
)
async def test_a_refusal_says_why_and_quotes_nothing(place: Foreign, why: str) -> None:
    with pytest.raises(ForbiddenError, match=why) as refused:
        await placed(place, "8.8.8.8")
    assert "hooks.example" not in str(refused.value)
