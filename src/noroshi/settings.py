"""Settings: environment, noroshi.toml and command line in; one frozen Settings, or the line that says what is wrong."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from noroshi.domain.categories import Category, OnUnknown, OverLimit
from noroshi.domain.people import DEFAULT_LOCALE
from noroshi.domain.priorities import Priority
from noroshi.flow.send.settings import provider_settings

FILE_NAME = "noroshi.toml"
MOST_WORKERS = 64


class SettingsError(Exception):
    """Stops the start: the text names the setting and what to write instead, and never shows a secret."""


class Settings(Struct, frozen=True):
    """Everything that was set. `values` holds the same as text by name in the environment, for the parts that read
    their own settings, and what a provider brought along stands there alone."""

    data: Path
    host: str
    port: int
    store: str
    public_url: str
    url: str | None
    key: str | None
    secret_key: str | None
    http_ca: Path | None
    catcher: bool
    channels: tuple[str, ...]
    default_locale: str
    categories: tuple[Category, ...]
    workers: dict[str, int]
    lease_margin: timedelta
    receive_within: timedelta
    max_waiting_calls: int
    max_unfinished: int
    log_level: str
    log_format: str
    crash_at: str | None
    unsafe: bool
    stripe_webhook_secret: tuple[str, ...] | None
    stripe_livemode: bool
    values: dict[str, str] = field(default_factory=dict)

    @property
    def store_path(self) -> Path:
        """The file, on SQLite."""
        return Path(self.store.removeprefix(SQLITE))

    @property
    def is_on_postgres(self) -> bool:
        return self.store.startswith(POSTGRES)

    def __repr__(self) -> str:
        return f"Settings(data={str(self.data)!r}, ...)"


Read = Callable[[str], Any]


class Setting(Struct, frozen=True):
    """A row of docs/settings.md. `key` is its name in noroshi.toml and in Settings; `read` raises ValueError with
    what is allowed. A default of None means: not set, or made from others (`default_text` says how). `also` is another
    variable that says the same, under a name that people know from elsewhere."""

    key: str
    read: Read
    default: str | None
    help: str
    default_text: str = ""
    is_secret: bool = False
    has_variable: bool = True
    has_key: bool = True
    also: str = ""

    @property
    def variable(self) -> str:
        return PREFIX + self.key.upper()

    @property
    def variables(self) -> tuple[str, ...]:
        return (self.variable, self.also) if self.also else (self.variable,)


PREFIX = "NOROSHI_"
SQLITE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")
CONFIG = "NOROSHI_CONFIG"

_NOT_SETTINGS = re.compile(
    # For tests and benchmarks, and what Kubernetes sets for every pod beside a service named noroshi.
    r"NOROSHI_(REQUIRE_SERVICES|(TEST|BENCH|SERVICE)_\w+|PORT_\d+_\w+)"
)


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("may not be empty")
    return text


def _switch(text: str) -> bool:
    if text.lower() not in {"on", "off", "true", "false"}:
        raise ValueError("must be on or off")
    return text.lower() in {"on", "true"}


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise ValueError("must be a whole number above 0")
    return int(text)


def _seconds(text: str) -> timedelta:
    return timedelta(seconds=_count(text))


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise ValueError("must be a port, 0 to 65535")
    return int(text)


def _one_of(*allowed: str) -> Read:
    def read(text: str) -> str:
        if text.lower() not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return text.lower()

    return read


def _store(text: str) -> str:
    if any(text.startswith(start) and len(text) > len(start) for start in (SQLITE, *POSTGRES)):
        return text
    raise ValueError("must be sqlite:///path/to/noroshi.db or postgresql://user:password@host:port/database")


def _url(text: str) -> str:
    if not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", text):
        raise ValueError("must be http:// or https:// with a host, without query or user")
    return text.rstrip("/")


def _pem(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise ValueError("must be the path of a PEM file that exists")
    return path


def _factories(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not all(re.fullmatch(r"[\w.]+:\w+", name) for name in names):
        raise ValueError("must be package.module:factory, several separated by commas")
    return names


def _signing_secrets(text: str) -> tuple[str, ...]:
    secrets = tuple(part.strip() for part in text.split(",") if part.strip())
    if not secrets or not all(part.isascii() and part.isprintable() for part in secrets):
        raise ValueError("must be the endpoint's signing secret, whsec_..., or two of them separated by a comma")
    return secrets


def _workers(text: str) -> dict[str, int]:
    workers: dict[str, int] = {}
    for part in (part.strip() for part in text.split(",") if part.strip()):
        name, _, count = (piece.strip() for piece in part.partition("="))
        channel, _, priority = name.partition(".")
        if not channel or priority not in list(Priority) or not count.isdecimal():
            raise ValueError(f"must be channel.priority=count, several separated by commas, not {part!r}")
        if not 1 <= int(count) <= MOST_WORKERS:
            raise ValueError(f"allows 1 to {MOST_WORKERS} workers a lane, not {part!r}")
        workers[name] = int(count)
    return workers


class _CategoryText(Struct, frozen=True, forbid_unknown_fields=True):
    """A category as written in noroshi.toml, under [categories.NAME]."""

    parent: str | None = None
    on: bool = True
    required: bool = False
    gathered: bool = False
    over_limit: OverLimit = OverLimit.SUPPRESS
    on_unknown: OnUnknown = OnUnknown.RESEND
    tries: int | None = None
    expires_after_seconds: int | None = None


def _categories(text: str) -> tuple[Category, ...]:
    try:
        written = msgspec.json.decode(text, type=dict[str, _CategoryText])
    except msgspec.ValidationError as error:
        raise ValueError(f"cannot be read: {error}") from error
    return tuple(
        Category(
            name=name,
            parent=one.parent,
            is_on=one.on,
            is_required=one.required,
            is_gathered=one.gathered,
            over_limit=one.over_limit,
            on_unknown=one.on_unknown,
            tries=one.tries,
            expires_after=None if one.expires_after_seconds is None else timedelta(seconds=one.expires_after_seconds),
        )
        for name, one in written.items()
    )


SETTINGS: tuple[Setting, ...] = (
    Setting("data", Path, ".noroshi", "The folder that holds the store, the keys and the lock.", has_key=False),
    Setting("host", _text, "127.0.0.1", "The address to listen on."),
    Setting("port", _port, "8000", "The port to listen on; 0 takes a free one."),
    Setting(
        "store",
        _store,
        None,
        "Where the truth is kept: `sqlite:///path`, or `postgresql://user:password@host:port/database`.",
        default_text="sqlite:///DATA/noroshi.db",
        is_secret=True,
    ),
    Setting("public_url", _url, None, "The base of every link and callback.", default_text="http://HOST:PORT"),
    Setting(
        "url",
        _url,
        None,
        "The server that the command line talks to.",
        default_text="that of `serve --dev` on DATA, else http://127.0.0.1:8000",
    ),
    Setting(
        "key",
        _text,
        None,
        "The API key that the command line talks with.",
        default_text="that of `serve --dev` on DATA, for that server alone",
        is_secret=True,
    ),
    Setting(
        "secret_key",
        _text,
        None,
        "32 bytes as base64url, from which all keys of the server are derived.",
        default_text="keys in DATA/secrets",
        is_secret=True,
    ),
    Setting(
        "http_ca",
        _pem,
        None,
        "A PEM file: an authority to trust beside the usual ones when providers are called over HTTPS.",
        default_text="the usual ones only",
    ),
    Setting("catcher", _switch, "off", "`on`: the catcher stands in for every channel without a provider."),
    Setting("channels", _factories, "", "Your own channels, `package.module:factory`, several separated by commas."),
    Setting("default_locale", _text, DEFAULT_LOCALE, "The language of people who have named none."),
    Setting(
        "categories",
        _categories,
        "{}",
        "Your own categories, `[categories.NAME]` with parent, on, required, gathered, over_limit (suppress, defer), "
        "on_unknown (resend, reconcile, give_up), tries, expires_after_seconds.",
        default_text="the built-in ones",
        has_variable=False,
    ),
    Setting("workers", _workers, "", "Workers per channel and priority over the defaults: `push.critical=8`."),
    Setting(
        "lease_margin",
        _seconds,
        "30",
        "Seconds that a lease lasts beyond an attempt's time-out: so long waits what a killed process had claimed.",
    ),
    Setting(
        "receive_within",
        _seconds,
        "30",
        "Seconds from the first byte of a request to its last; then the connection is closed with 408.",
    ),
    Setting("max_waiting_calls", _count, "10000", "Calls that may wait for their commit before a 503."),
    Setting("max_unfinished", _count, "5000000", "Deliveries that may be unfinished before a 503."),
    Setting("log_level", _one_of("debug", "info", "warning", "error"), "info", "The least level that is written."),
    Setting("log_format", _one_of("console", "json"), "console", "`json` for machines, `console` for people."),
    Setting("crash_at", _text, None, "Tests only: ends the server at a crash point, `name` or `name:count`."),
    Setting("unsafe", _switch, "off", "`on`: start although a setting is fit for tests and demonstrations only."),
    Setting(
        "stripe_webhook_secret",
        _signing_secrets,
        None,
        "What Stripe signs `POST /stripe/webhook` with, `whsec_...`; two separated by a comma while one is replaced.",
        default_text="no payments",
        is_secret=True,
    ),
    Setting(
        "stripe_livemode", _switch, "on", "`off`: events of Stripe's test mode confirm reservations, not live ones."
    ),
    *(
        Setting(
            row.key,
            row.read,
            row.default,
            row.help,
            default_text=row.default_text,
            is_secret=row.is_secret,
            also=row.also,
        )
        for row in provider_settings()
    ),
)


def read_settings(environ: Mapping[str, str], given: Mapping[str, str] | None = None) -> Settings:
    """`given` is what the command line says, by key: it wins over the environment, and that over the file."""
    rows = {row.key: row for row in SETTINGS}
    variables = _read_environment(environ, rows)
    data = Path((given or {}).get("data") or variables.get("data") or rows["data"].default or "")
    written = _read_file(environ, data, rows)
    texts = {
        **{k: r.default for k, r in rows.items() if r.default is not None},
        **written,
        **variables,
        **(given or {}),
    }
    texts["data"] = str(data)
    texts.setdefault("store", f"{SQLITE}{data / 'noroshi.db'}")
    host = f"[{texts['host']}]" if ":" in texts["host"] else texts["host"]
    texts.setdefault("public_url", f"http://{host}:{texts['port']}")
    values = {rows[key].variable: text for key, text in texts.items()}
    read = {key: _parsed(row, texts.get(key)) for key, row in rows.items()}
    settings = Settings(**{key: read[key] for key in read.keys() & set(Settings.__struct_fields__)}, values=values)
    if settings.crash_at is not None and not settings.unsafe:
        raise SettingsError("NOROSHI_CRASH_AT ends the server on purpose: set NOROSHI_UNSAFE=on too, in a test")
    return settings


def _parsed(row: Setting, text: str | None) -> Any:
    if text is None:
        return None
    try:
        return row.read(text)
    except ValueError as error:
        shown = "" if row.is_secret else f" (it is {text!r})"
        raise SettingsError(f"{row.variable if row.has_variable else row.key} {error}{shown}") from error


def _read_environment(environ: Mapping[str, str], rows: Mapping[str, Setting]) -> dict[str, str]:
    names = {name: row for row in rows.values() if row.has_variable for name in row.variables}
    files = {f"{name}_FILE": row for name, row in names.items() if row.is_secret}
    found: dict[str, str] = {}
    for name, text in environ.items():
        row = files.get(name) or names.get(name)
        if row is None:
            if name.startswith(PREFIX) and name != CONFIG and not _NOT_SETTINGS.fullmatch(name):
                raise SettingsError(_unknown(name, "variable", [*names, *files, CONFIG]))
        elif row.key in found:
            other = next(one for one in environ if (files.get(one) or names.get(one)) is row)
            raise SettingsError(f"{name} and {other} are both set: leave one out")
        elif name in files:
            found[row.key] = _read_secret(name, Path(text))
        elif not (name == "NOROSHI_PORT" and text.startswith("tcp://")):  # Kubernetes, for a service of that name
            found[row.key] = text
    return found


def _read_file(environ: Mapping[str, str], data: Path, rows: Mapping[str, Setting]) -> dict[str, str]:
    path = Path(environ[CONFIG]) if CONFIG in environ else data / FILE_NAME
    if CONFIG not in environ and not path.exists():
        return {}
    try:
        written = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(f"{path} cannot be read: {reason}") from error
    names = {row.key: row for row in rows.values() if row.has_key}
    files = {f"{row.key}_file": row for row in names.values() if row.is_secret}
    found: dict[str, str] = {}
    for key, value in written.items():
        if key in files:
            if files[key].key in written:
                raise SettingsError(f"{path}: {key} and {files[key].key} are both set: leave one out")
            found[files[key].key] = _read_secret(f"{path}: {key}", Path(str(value)))
        elif key not in names:
            raise SettingsError(f"{path}: " + _unknown(key, "key", [*names, *files]))
        else:
            found[key] = _as_text(key, value)
    return found


def _as_text(key: str, value: Any) -> str:
    """A value of the file in the form it would have in the environment."""
    if key == "categories":
        return msgspec.json.encode(value).decode()
    if isinstance(value, dict):
        return ",".join(f"{name}={count}" for name, count in _flattened(value))
    if isinstance(value, list):
        return ",".join(str(item) for item in value)
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def _flattened(table: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """`push.critical = 8` in the file is a table in a table."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{inner}", found) for inner, found in _flattened(value))
        else:
            yield name, value


def _read_secret(name: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{name} names a file that cannot be read: {path}") from error


def _unknown(name: str, kind: str, known: Iterable[str]) -> str:
    by_word = {one.removeprefix(PREFIX): one for one in known}
    close = [by_word[word] for word in get_close_matches(name.removeprefix(PREFIX), by_word)]
    meant = f"; did you mean {' or '.join(close)}?" if close else "; see docs/settings.md"
    return f"there is no {kind} {name}{meant}"
