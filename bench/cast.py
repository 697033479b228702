"""The cast of P1: who is who follows from a person's number, so that checks know beforehand what must come out."""

USERS = 100_000
TEMPLATE = "bench-note"


def user_id(number: int) -> str:
    return f"u{number:06d}"


def number_of(user: str) -> int:
    return int(user[1:])


def has_quiet_hours(number: int) -> bool:
    return number % 3 == 0


def has_category_off(number: int) -> bool:
    return number % 10 == 1


def is_suppressed(number: int) -> bool:
    return number % 50 == 7


def is_reachable(number: int) -> bool:
    return not (has_category_off(number) or is_suppressed(number))


def reachable_users(count: int) -> list[int]:
    """The first `count` numbers of people who get what is sent to them."""
    return [number for number in range(USERS) if is_reachable(number)][:count]
