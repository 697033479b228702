"""Inboxes: a person in; what they were told in-app, what of it they have read, and passes for their own page, out."""

from datetime import timedelta

from noroshi.client import answers
from noroshi.client.answers import Page
from noroshi.client.calls import Caller, given, place


class InboxCaller(Caller):
    """The part of the API that a person's own page may call, too. What comes in live is for that page: its stream
    and socket are no methods here."""

    async def inbox(
        self,
        user_id: str,
        *,
        is_archived: bool = False,
        is_unread: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[answers.InboxEntry]:
        """Newest first: those that were put away, or those that were not; of these only the unread ones, if asked."""
        return await self._get(
            Page[answers.InboxEntry],
            place("users", user_id, "inbox"),
            archived="true" if is_archived else None,
            unread="true" if is_unread else None,
            limit=limit,
            cursor=cursor,
        )

    async def unread_count(self, user_id: str) -> answers.InboxState:
        return await self._get(answers.InboxState, place("users", user_id, "inbox", "unread-count"))

    async def read(self, user_id: str, entry_id: int) -> answers.Marked:
        """The person has read the entry: its notification is OPENED."""
        return await self._post(answers.Marked, place("users", user_id, "inbox", entry_id, "read"))

    async def archive(self, user_id: str, entry_id: int) -> answers.Marked:
        return await self._post(answers.Marked, place("users", user_id, "inbox", entry_id, "archive"))

    async def read_all(self, user_id: str, *, up_to: int | None = None) -> answers.ReadAll:
        """`up_to` is the last entry that the person has seen; what came after it stays unread."""
        path = place("users", user_id, "inbox", "read-all")
        return await self._call("POST", answers.ReadAll, path, query=given(up_to=up_to))

    async def token(self, user_id: str, *, expires_in: timedelta | None = None) -> answers.Token:
        """For the person's own page; an hour at most, which it is if nothing is said."""
        seconds = None if expires_in is None else int(expires_in.total_seconds())
        return await self._post(answers.Token, place("users", user_id, "tokens"), given(expires_in=seconds))

    async def ticket(self, user_id: str) -> answers.Ticket:
        """Opens one stream or socket of the person, once."""
        return await self._post(answers.Ticket, place("users", user_id, "inbox", "tickets"))
