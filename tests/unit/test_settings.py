"""Settings: where they come from, which wins, and what stops the start."""

from datetime import timedelta
from pathlib import Path

import pytest

from noroshi.domain.categories import Category, OnUnknown, OverLimit
from noroshi.flow.send.settings import provider_settings
from noroshi.settings import SETTINGS, Settings, SettingsError, read_settings


def read(data: Path, toml: str = "", /, **environ: str) -> Settings:
    if toml:
        data.mkdir(exist_ok=True)
        (data / "noroshi.toml").write_text(toml, encoding="utf-8")
    return read_settings({"NOROSHI_DATA": str(data), "HOME": "/", **environ})


def test_without_any_setting_the_defaults_hold() -> None:
    # DESIGN 8
    settings = read_settings({})
    assert (settings.host, settings.port, settings.data) == ("127.0.0.1", 8000, Path(".noroshi"))
    assert settings.store == "sqlite:///.noroshi/noroshi.db"
    assert settings.store_path == Path(".noroshi/noroshi.db")
    assert settings.public_url == "http://127.0.0.1:8000"
    assert (settings.default_locale, settings.max_waiting_calls, settings.max_unfinished) == ("ja", 10_000, 5_000_000)
    assert (settings.catcher, settings.unsafe, settings.secret_key, settings.crash_at) == (False, False, None, None)


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "noroshi.toml").write_text('port = 1\nhost = "a"\nlog_level = "debug"\n')
    environ = {"NOROSHI_DATA": str(tmp_path), "NOROSHI_PORT": "2", "NOROSHI_HOST": "b"}
    settings = read_settings(environ, {"port": "3"})
    assert (settings.port, settings.host, settings.log_level) == (3, "b", "debug")
    assert settings.public_url == "http://b:3"


def test_the_public_url_of_an_ipv6_address_has_brackets(tmp_path: Path) -> None:
    assert read(tmp_path, NOROSHI_HOST="::1").public_url == "http://[::1]:8000"


def test_the_file_may_lie_elsewhere_and_must_then_exist(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text("port = 9")
    assert read(tmp_path / "data", NOROSHI_CONFIG=str(tmp_path / "other.toml")).port == 9
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        read(tmp_path, NOROSHI_CONFIG=str(tmp_path / "none.toml"))


def test_an_unknown_variable_stops_the_start_and_shows_what_was_meant(tmp_path: Path) -> None:
    # DESIGN 8
    with pytest.raises(SettingsError, match=r"no variable NOROSHI_PROT; did you mean NOROSHI_PORT\?"):
        read(tmp_path, NOROSHI_PROT="1")
    with pytest.raises(SettingsError, match=r"no variable NOROSHI_XYZZY; see docs/settings.md"):
        read(tmp_path, NOROSHI_XYZZY="1")


def test_an_unknown_key_of_the_file_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"noroshi.toml: there is no key catchr; did you mean catcher\?"):
        read(tmp_path, "catchr = true")
    with pytest.raises(SettingsError, match="there is no key data"):
        read(tmp_path, 'data = "elsewhere"')


def test_variables_of_tests_and_of_kubernetes_are_not_settings(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        NOROSHI_REQUIRE_SERVICES="1",
        NOROSHI_TEST_SEEDS="5",
        NOROSHI_SERVICE_HOST="10.0.0.1",
        NOROSHI_PORT_8000_TCP_ADDR="10.0.0.1",
        NOROSHI_PORT="tcp://10.0.0.1:8000",
    )
    assert settings.port == 8000


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("NOROSHI_PORT", "eighty", r"NOROSHI_PORT must be a port, 0 to 65535 \(it is 'eighty'\)"),
        ("NOROSHI_PORT", "70000", "NOROSHI_PORT must be a port"),
        ("NOROSHI_HOST", " ", "NOROSHI_HOST may not be empty"),
        ("NOROSHI_STORE", "mysql://db/noroshi", "NOROSHI_STORE must be sqlite:///.* or postgresql://"),
        ("NOROSHI_STORE", "sqlite:///", "NOROSHI_STORE must be"),
        ("NOROSHI_PUBLIC_URL", "noroshi.example", "NOROSHI_PUBLIC_URL must be http"),
        ("NOROSHI_PUBLIC_URL", "https://user@noroshi.example", "NOROSHI_PUBLIC_URL must be http"),
        ("NOROSHI_CATCHER", "maybe", "NOROSHI_CATCHER must be on or off"),
        ("NOROSHI_CHANNELS", "nonsense", "NOROSHI_CHANNELS must be package.module:factory"),
        ("NOROSHI_MAX_UNFINISHED", "0", "NOROSHI_MAX_UNFINISHED must be a whole number above 0"),
        ("NOROSHI_LOG_LEVEL", "loud", "NOROSHI_LOG_LEVEL must be one of debug, info"),
        ("NOROSHI_WORKERS", "push.urgent=3", "NOROSHI_WORKERS must be channel.priority=count"),
        ("NOROSHI_WORKERS", "push.high=65", "NOROSHI_WORKERS allows 1 to 64"),
        ("NOROSHI_CATEGORIES", "{}", "no variable NOROSHI_CATEGORIES"),
    ],
)
def test_a_wrong_value_stops_the_start_with_what_is_allowed(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read(tmp_path, **{name: text})


def test_a_crash_point_needs_a_word_that_nobody_says_in_production(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="set NOROSHI_UNSAFE=on too"):
        read(tmp_path, NOROSHI_CRASH_AT="before_commit")
    assert read(tmp_path, NOROSHI_CRASH_AT="before_commit:2", NOROSHI_UNSAFE="on").crash_at == "before_commit:2"


def test_a_secret_may_come_from_a_file_but_not_from_two_places(tmp_path: Path) -> None:
    secret = tmp_path / "key"
    secret.write_text("s3cret\n")
    assert read(tmp_path, NOROSHI_SECRET_KEY_FILE=str(secret)).secret_key == "s3cret"
    with pytest.raises(SettingsError, match="are both set"):
        read(tmp_path, NOROSHI_SECRET_KEY_FILE=str(secret), NOROSHI_SECRET_KEY="other")
    with pytest.raises(SettingsError, match="NOROSHI_SECRET_KEY_FILE names a file that cannot be read"):
        read(tmp_path, NOROSHI_SECRET_KEY_FILE=str(tmp_path / "none"))
    assert read(tmp_path, f'secret_key_file = "{secret}"').secret_key == "s3cret"
    with pytest.raises(SettingsError, match="are both set"):
        read(tmp_path, f'secret_key_file = "{secret}"\nsecret_key = "x"')


def test_only_secrets_may_come_from_files(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no variable NOROSHI_HOST_FILE"):
        read(tmp_path, NOROSHI_HOST_FILE="x")


def test_no_secret_shows_in_a_repr(tmp_path: Path) -> None:
    # I12
    assert "s3cret" not in repr(read(tmp_path, NOROSHI_SECRET_KEY="s3cret"))


def test_tables_of_the_file_become_categories_and_workers(tmp_path: Path) -> None:
    # N3.6, N5.2
    settings = read(
        tmp_path,
        """
        catcher = true
        channels = ["shop.channels:pager", "shop.channels:fax"]
        [workers]
        push.critical = 8
        "email.normal" = 4
        [categories.review]
        parent = "social"
        on = false
        over_limit = "defer"
        on_unknown = "give_up"
        tries = 2
        expires_after_seconds = 60
        """,
    )
    assert settings.catcher
    assert settings.channels == ("shop.channels:pager", "shop.channels:fax")
    assert settings.workers == {"push.critical": 8, "email.normal": 4}
    assert settings.categories == (
        Category(
            "review",
            parent="social",
            is_on=False,
            over_limit=OverLimit.DEFER,
            on_unknown=OnUnknown.GIVE_UP,
            tries=2,
            expires_after=timedelta(seconds=60),
        ),
    )


def test_parts_find_their_own_settings_as_text(tmp_path: Path) -> None:
    settings = read(tmp_path, "catcher = true\n[workers]\npush.high = 3")
    assert settings.values["NOROSHI_CATCHER"] == "on"
    assert settings.values["NOROSHI_WORKERS"] == "push.high=3"


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[categories.review]\nparnt = 'social'", "categories cannot be read: .*parnt"),
        ("[categories.review]\nover_limit = 'drop'", "categories cannot be read: .*drop"),
        ("port = [", "noroshi.toml cannot be read"),
    ],
)
def test_a_file_that_cannot_be_understood_stops_the_start(tmp_path: Path, toml: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read(tmp_path, toml)


def test_every_row_is_a_field_and_every_field_a_row() -> None:
    own = [name for name in Settings.__struct_fields__ if name != "values"]
    assert [row.key for row in SETTINGS] == own + [row.key for row in provider_settings()]


@pytest.mark.parametrize("text", ["0", "-3", "1.5", "soon"])
def test_a_lease_margin_is_a_whole_number_of_seconds(text: str) -> None:
    assert read_settings({"NOROSHI_LEASE_MARGIN": "5"}).lease_margin == timedelta(seconds=5)
    with pytest.raises(SettingsError, match="NOROSHI_LEASE_MARGIN must be a whole number above 0"):
        read_settings({"NOROSHI_LEASE_MARGIN": text})


def test_an_authority_for_outgoing_calls_must_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("")
    read = read_settings({"NOROSHI_HTTP_CA": str(tmp_path / "ca.pem")}, {"data": str(tmp_path)})
    assert read.http_ca == tmp_path / "ca.pem"
    with pytest.raises(SettingsError, match="NOROSHI_HTTP_CA must be the path"):
        read_settings({"NOROSHI_HTTP_CA": str(tmp_path / "missing.pem")}, {"data": str(tmp_path)})
