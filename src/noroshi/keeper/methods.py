"""The ports of a store in, a numbered table of their methods out: their own types say how each call is written."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

import msgspec

from noroshi.keeper.claims import PackedTaken, opened, pack_taken
from noroshi.keeper.wire import revive
from noroshi.ports.store import StorePorts

NOT_GIVEN = inspect.Parameter.empty


class Method:
    """One method of one port. Arguments travel as a row in the order of the signature."""

    def __init__(self, number: int, port: str, name: str, function: Callable[..., Any]) -> None:
        self.number = number
        self.port = port
        self.name = name
        parameters = list(inspect.signature(function).parameters.values())[1:]
        hints = get_type_hints(function)
        row: Any = tuple.__class_getitem__(tuple(hints[p.name] for p in parameters))
        self._places = [(p.name, p.default) for p in parameters]
        self._named_from = sum(p.kind is not p.KEYWORD_ONLY for p in parameters)
        self.unpack_row: Callable[[bytes], tuple[Any, ...]] = msgspec.msgpack.Decoder(row, dec_hook=revive).decode
        self.unpack: Callable[[bytes], Any] = msgspec.msgpack.Decoder(self.wire_type(hints["return"])).decode

    def row(self, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call in one row, those left out by their defaults."""
        return (*given, *(named.get(name, default) for name, default in self._places[len(given) :]))

    async def call(self, store: StorePorts, row: tuple[Any, ...]) -> Any:
        """The method's answer, as it is to be packed."""
        named = {name: row[place] for place, (name, _) in enumerate(self._places) if place >= self._named_from}
        return self.packed(await getattr(getattr(store, self.port), self.name)(*row[: self._named_from], **named))

    def wire_type(self, answer: Any) -> Any:
        return answer

    def packed(self, answer: Any) -> Any:
        return answer

    def opened(self, answer: Any) -> Any:
        return answer


class _Take(Method):
    """What many claims share travels once."""

    def wire_type(self, answer: Any) -> Any:  # noqa: ARG002 - it has one of its own
        return PackedTaken

    def packed(self, answer: Any) -> Any:
        return pack_taken(answer)

    def opened(self, answer: Any) -> Any:
        return opened(answer)


def _ports() -> dict[str, type]:
    return {
        name: get_type_hints(member.fget)["return"]
        for name, member in vars(StorePorts).items()
        if isinstance(member, property)
    }


def _methods() -> Iterator[Method]:
    number = 0
    for port, protocol in _ports().items():
        for name, function in vars(protocol).items():
            if inspect.iscoroutinefunction(function):
                number += 1
                yield (_Take if (port, name) == ("queue", "take") else Method)(number, port, name, function)


METHODS: dict[int, Method] = {method.number: method for method in _methods()}
