"""The command line: words in, an exit code out (docs/command-line.md has the table of codes)."""

import typer

from noroshi.entrypoints.cli.lazy import Row, group_of, load_logs

_TELL, _LOOK, _SERVE, _CARE = "Tell people", "Look and mend", "Serve", "Care for the store"

COMMANDS: dict[str, Row] = {
    "send": Row("sending:send", _TELL),
    "users": Row("users:app", _TELL),
    "templates": Row("templates:app", _TELL),
    "explain": Row("explaining:explain", _LOOK),
    "dead-letters": Row("dead_letters:app", _LOOK),
    "reservations": Row("reservations:app", _TELL),
    "console": Row("console:console", _LOOK),
    "pause": Row("pausing:pause", _LOOK),
    "resume": Row("pausing:resume", _LOOK),
    "serve": Row("servers:serve", _SERVE),
    "worker": Row("servers:worker", _SERVE),
    "keys": Row("keys:app", _SERVE),
    "doctor": Row("doctor:doctor", _CARE),
    "migrate": Row("migrating:migrate", _CARE),
    "backup": Row("keeping:backup", _CARE),
    "restore": Row("keeping:restore", _CARE),
    "move": Row("keeping:move", _CARE),
    "version": Row("version:version", _CARE),
}

load_logs()

# Typer's own tracebacks show the values of local variables, among them keys and addresses (I12).
app = typer.Typer(cls=group_of(COMMANDS), no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def noroshi() -> None:
    """Tell people things, on every channel they can be reached on, and know afterwards why each did or did not hear."""


if __name__ == "__main__":
    app(prog_name="noroshi")
