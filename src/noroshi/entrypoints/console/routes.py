"""The table of pages: every path that a visit opens."""

from noroshi.entrypoints.console import (
    activity,
    batches,
    catcher,
    dead_letters,
    health,
    live,
    people,
    templates,
)
from noroshi.entrypoints.console.calls import Row

_BATCH = "/console/batches/{batch_id}"
_TEMPLATE = "/console/templates/{template_id}"
_LETTER = "/console/dead-letters/{dead_letter_id}"

ROWS: tuple[Row, ...] = (
    Row("GET", "/console", activity.show),
    Row("GET", "/console/", activity.show),
    Row("GET", "/console/live", live.watch_activity),
    Row("GET", "/console/find", batches.find),
    Row("GET", "/console/catcher", catcher.show),
    Row("GET", "/console/catcher/live", live.watch_caught),
    Row("GET", "/console/catcher/{caught_id}", catcher.show_one),
    Row("GET", "/console/catcher/{caught_id}/letter", catcher.show_letter),
    Row("GET", "/console/catcher/{caught_id}/attachments/{position}", catcher.download),
    Row("GET", _BATCH, batches.show_batch),
    Row("POST", f"{_BATCH}/cancel", batches.cancel_batch),
    Row("GET", f"{_BATCH}/{{notification_id}}", batches.show_notification),
    Row("GET", "/console/people", people.show),
    Row("GET", "/console/people/{user_id}", people.show_one),
    Row("GET", "/console/templates", templates.show),
    Row("GET", _TEMPLATE, templates.show_one),
    Row("POST", _TEMPLATE, templates.save),
    Row("POST", f"{_TEMPLATE}/preview", templates.preview),
    Row("POST", f"{_TEMPLATE}/letter", templates.preview_letter),
    Row("POST", f"{_TEMPLATE}/rollback", templates.roll_back),
    Row("POST", f"{_TEMPLATE}/send", templates.send),
    Row("GET", "/console/dead-letters", dead_letters.show),
    Row("POST", "/console/dead-letters/replay", dead_letters.replay_all),
    Row("POST", "/console/dead-letters/discard", dead_letters.discard_all),
    Row("GET", _LETTER, dead_letters.show_one),
    Row("POST", f"{_LETTER}/replay", dead_letters.replay_one),
    Row("POST", f"{_LETTER}/discard", dead_letters.discard_one),
    Row("GET", "/console/health", health.show),
    Row("POST", "/console/pauses", health.pause),
    Row("POST", "/console/pauses/{pause_id}/resume", health.resume),
)
