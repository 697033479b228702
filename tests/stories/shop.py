"""The shop of a story: farms, customers, reservations and payments over the API of a world."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
import stripe

from noroshi.domain.instants import moment_of
from tests.reservation_cast import JST, LINE_USER_ID
from tests.stories.client import Answer, Client, Json
from tests.stories.world import World

SECRET = "whsec_of_the_shop"
COMPLETED, SUCCEEDED = "checkout.session.completed", "payment_intent.succeeded"
FARM = {
    "name": "やまだ農園",
    "pickup_place_name": "やまだ農園 直売所",
    "pickup_map_url": "https://maps.example.jp/yamada",
    "pickup_detail_memo": "駐車場は建物の裏手にございます。",
}


class Shop:
    """`anyone` calls without a key: Stripe, and customers with their links."""

    def __init__(self, world: World, **farm: Any) -> None:
        self.world = world
        self.line = world.line
        self.anyone = Client(world.app, None)
        self.farm_id = world.post("/api/v1/farms", {**FARM, **farm})["farm_id"]
        self.meet("hanako", name="花子", line_user_id=LINE_USER_ID)

    def meet(self, customer_id: str, **fields: Any) -> None:
        self.world.put(f"/api/v1/customers/{customer_id}", fields)

    def reserve(self, pickup_in: timedelta | datetime = timedelta(days=3), **fields: Any) -> int:
        start = pickup_in if isinstance(pickup_in, datetime) else self.world.now + pickup_in
        body = {
            "farm_id": self.farm_id,
            "customer_id": "hanako",
            "pickup_start": start.isoformat(),
            "pickup_end": (start + timedelta(hours=1)).isoformat(),
            "qty_5": 2,
            "subtotal_5": 5_000,
            "pickup_code": "0417",
            **fields,
        }
        number: int = self.world.post("/api/v1/reservations", body)["reservation_id"]
        return number

    # payments

    def event(self, number: int | str, kind: str = SUCCEEDED, *, is_live: bool = True, **more: Any) -> bytes:
        money = {"metadata": {"reservation_id": str(number)}, "currency": "jpy"}
        if kind == COMPLETED:
            money |= {"id": "cs_1", "payment_intent": "pi_1", "payment_status": "paid", "amount_total": 5_000}
        else:
            money |= {"id": "pi_1", "amount_received": 5_000}
        event = {"id": "evt_1", "type": kind, "livemode": is_live, "data": {"object": {**money, **more}}}
        return msgspec.json.encode(event)

    def signed(self, body: bytes, secret: str = SECRET) -> dict[str, str]:
        now = int(self.world.now.timestamp())
        header = stripe.WebhookSignature.generate_signature_header(body.decode(), secret, now)
        return {"Stripe-Signature": header}

    def tell(self, body: bytes, headers: dict[str, str] | None = None) -> Answer:
        """Stripe tells of an event."""
        headers = self.signed(body) if headers is None else headers
        return self.world.call("POST", "/stripe/webhook", body, headers, self.anyone)

    def pay(self, number: int, kind: str = SUCCEEDED, **more: Any) -> str:
        answer = self.tell(self.event(number, kind, **more))
        assert answer.status == 200, answer.text
        result: str = answer["result"]
        return result

    # the rest

    def cancel(self, number: int) -> Answer:
        return self.world.call("POST", f"/reservations/{number}/cancel")

    def send_pending(self, query: str = "") -> Json:
        """What cron does every minute."""
        return self.world.post(f"/notifications/send-pending{query}").body

    def send_job(self, job_id: int, query: str = "") -> Answer:
        return self.world.call("POST", f"/notifications/send-job/{job_id}{query}")

    def booking(self, number: int) -> Json:
        return self.world.get(f"/api/v1/reservations/{number}").body

    def states(self, number: int) -> dict[str, str]:
        return {one["kind"]: one["state"] for one in self.booking(number)["notifications"]}

    def job(self, number: int, kind: str) -> Json:
        job: Json = next(one["job"] for one in self.booking(number)["notifications"] if one["kind"] == kind)
        return job

    def texts(self) -> list[str]:
        """The first line of every message that LINE took, oldest first."""
        return [one.text.partition("\n")[0] for one in self.line.taken]

    def times(self) -> list[datetime]:
        return [moment_of(one.at).astimezone(JST).replace(microsecond=0) for one in self.line.taken]


CONFIRMED = "ご予約いただき、誠にありがとうございます。"
REMINDED = "お米の受け渡し日時が近づいてまいりましたので、ご案内申し上げます。"
CANCELLED = "ご予約のキャンセルを承りました。"
