"""Plain data goes in; what a template may look at comes out: values without methods (N2.6).

minijinja falls back from a missing key to the attributes of the Python object behind it. So {{ order.get }} would
print a bound method, {{ lines.append(1) }} would change what the next recipient sees, and {{ items }}, if the data
has no such key, would be a method of the context itself and no undefined variable. Three things close that:
names of methods at the top level go through a hidden name, values are sealed where the source might look up a
method's name, and where it cannot they stay as they are, since minijinja is twice as fast on exact dicts and lists.
"""

import re
from typing import Any, NoReturn

_HIDDEN = "_hidden_"


def _public(kind: type) -> frozenset[str]:
    return frozenset(name for name in dir(kind) if not name.startswith("_"))


_DICT_METHODS = _public(dict)
_METHODS = _DICT_METHODS | _public(list)

# A method's name after a dot; or a lookup whose name is computed: by a subscript, by a filter that takes an
# attribute, by a filter that is itself named by a value, or by keywords unpacked from a map.
_MAY_NAME_A_METHOD = re.compile(rf"\.\s*(?:{'|'.join(sorted(_METHODS))})\b|\[|\*\*|attr|groupby|\bmap\b")
_WORD = re.compile(r"[^\W\d]\w*")


class _Absent:
    """An attribute that is not there."""

    def __get__(self, owner: object, kind: type) -> NoReturn:
        raise AttributeError


class _Items:
    """What makes minijinja take an object for a map: it only asks whether `items` is there. Asked for by a
    template, it is as absent as every other method; the miss of the key `items` comes right before."""

    is_asked_for = False

    def __get__(self, owner: object, kind: type) -> None:
        if self.is_asked_for:
            self.is_asked_for = False
            raise AttributeError


_ABSENT = _Absent()
_ITEMS = _Items()


class SealedMap(dict[str, Any]):
    __slots__ = ()
    vars().update(dict.fromkeys(_DICT_METHODS, _ABSENT), items=_ITEMS)

    def __missing__(self, key: str) -> NoReturn:
        _ITEMS.is_asked_for = key == "items"
        raise KeyError(key)


class SealedList(list[Any]):
    __slots__ = ()
    vars().update(dict.fromkeys(_public(list), _ABSENT))


def seal(value: Any) -> Any:
    """The same value with maps and lists that have no methods, all the way down."""
    if type(value) is dict:
        return SealedMap({key: seal(inner) for key, inner in value.items()})
    if type(value) is list:
        return SealedList([seal(inner) for inner in value])
    return value


def may_name_a_method(source: str) -> bool:
    """Whether a template with this source must be given sealed values."""
    return _MAY_NAME_A_METHOD.search(source) is not None


def words_of(source: str) -> frozenset[str]:
    """Every word in the source: each variable it looks at is among them."""
    return frozenset(_WORD.findall(source))


def with_hidden_names(source: str) -> str:
    """The source with its top-level names that are also methods of a dict taken from the hidden names. An unknown
    hidden name is undefined, and so is what is set from it."""
    names = sorted(words_of(source) & _DICT_METHODS)
    return "".join(f"{{% set {name} = {_HIDDEN}{name} %}}" for name in names) + source


def visible(data: dict[str, Any], words: frozenset[str]) -> dict[str, Any]:
    """What of the data a source with these words can see, under the names that it is looked up by."""
    return {_HIDDEN + name if name in _DICT_METHODS else name: data[name] for name in words & data.keys()}
