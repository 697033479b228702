"""The commands to paste, found in what `make run` prints."""

from bench.first_message import commands_in
from rich.console import Console

from noroshi.entrypoints.cli.demonstration.printing import print_welcome

KEY = "nrs_" + 36 * "0"


def test_the_printed_commands_send_and_then_show_what_arrived() -> None:
    console = Console(width=80, record=True, quiet=False)
    print_welcome(console, "http://127.0.0.1:8000", KEY, None)
    send, look = commands_in("pip: fine\n" + console.export_text())
    assert "/api/v1/notifications" in send and send.endswith("}}'")
    assert "/api/v1/caught?user_id=hanako" in look and KEY in look


def test_a_command_is_not_pasted_before_its_line_has_ended() -> None:
    assert commands_in("curl -s http://one\ncurl -s http://tw") == ["curl -s http://one"]
