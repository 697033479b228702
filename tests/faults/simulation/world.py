"""A world: one seed goes in; the product lives, crashes and lives again in it; what came of it comes out."""

import random
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from contextlib import closing
from datetime import timedelta
from functools import partial
from hashlib import blake2b
from typing import Any

from msgspec import Struct, field

from noroshi.domain.deliveries import DeliveryKey
from noroshi.domain.instants import Instant
from noroshi.domain.records import DeadLetterFilter
from noroshi.domain.sums import sum_up
from tests.faults.machinery.reckoning import Crash, Reckoning, Word, render_problems
from tests.faults.machinery.sim_loop import CrashError, RunawayError, StuckError, UnhandledError
from tests.faults.machinery.sim_machine import SimMachine
from tests.faults.machinery.sim_ports import SIM_START, SimClock
from tests.faults.simulation.asks import CALLER
from tests.faults.simulation.callers import Callers
from tests.faults.simulation.evidence import Evidence, Violation
from tests.faults.simulation.facts import read_facts
from tests.faults.simulation.invariants import broken_invariants, orphans
from tests.faults.simulation.outlook import Outlook, look
from tests.faults.simulation.population import new_database
from tests.faults.simulation.provider import CALM, Provider
from tests.faults.simulation.scenario import Disturbance, Ending, LifePlan, draw_scenario
from tests.faults.simulation.site import RETIRED, USUAL, Site, Surroundings, small_scale
from tests.faults.simulation.sorting import sort_out
from tests.faults.simulation.story import tell_fates, tell_scenario
from tests.faults.simulation.windows import leased, windows_of_crash

MOST_LIVES = 40
"""Seven by poison, and more than any scenario plans: a world that needs more is going round in circles."""

_MOST_STEPS = 50_000
_MOST_ROUNDS = 2_000
_LONGEST_OVERDUE = timedelta(minutes=8)
"""The longest rest an account is given is five minutes; then the breaker may want another."""

_SECOND = timedelta(seconds=1)
_NEVER = Instant(1 << 62)
_MICROSECONDS = 1_000_000


class Verdict(Struct):
    """`digest` is the same for every run of a seed, or the simulation is not to be trusted."""

    seed: int
    violations: list[Violation] = field(default_factory=list)
    windows: Counter[str] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    crashes: int = 0
    shutdowns: int = 0
    copies: int = 0
    bound: int = 0
    steps: int = 0
    digest: str = ""


class World:
    def __init__(self, seed: int, tell: Callable[[str], None] | None = None) -> None:
        self.verdict = Verdict(seed)
        self.machine = SimMachine(seed)
        self.scenario = draw_scenario(self.machine.chance)
        self._listener = tell
        self._where, self._keeper = new_database()
        self._provider = Provider(random.Random(f"provider {seed}"), self.scenario.weather)
        self._around = Surroundings(
            where=self._where,
            dice=self.machine.dice,
            crash_points=self.machine.crash_points,
            provider=self._provider,
            chance=random.Random(f"site {seed}"),
            per_second=self.scenario.per_second,
            mishaps=self.scenario.mishaps,
            has_gamma=self.scenario.has_gamma,
        )
        self._callers = Callers(self.scenario.asks, self.scenario.errands)
        self._crashes: list[Crash] = []
        self._alone: set[int] = set()
        self._lives = 0
        self._zombie: Site | None = None
        self._shared_since = _NEVER
        self._newcomer: tuple[Site, set[DeliveryKey], int] | None = None
        self.machine.crash_points.listeners.append(self._notice)

    # the course of things

    def run(self) -> Verdict:
        for line in tell_scenario(self.scenario):
            self._tell(line)
        with closing(self._keeper), small_scale(self.scenario.answer_wait):
            for plan in self.scenario.lives:
                self._live(partial(self._follow, plan=plan), RETIRED if plan.is_retired else USUAL, plan)
            self._provider.weather = CALM
            if self.scenario.has_gamma:
                self._live_out(RETIRED)
            self._live_out(USUAL, is_last=True)
            self._judge()
        return self.verdict

    def _live_out(self, served: Mapping[str, str], *, is_last: bool = False) -> None:
        """Lives on until nothing is left to do that these accounts can do."""
        while not self.verdict.violations and self._lives < MOST_LIVES:
            if self._live(partial(self._finish, served=served, is_last=is_last), served):
                return
        if not self.verdict.violations:
            self._violate("I1", f"not finished after {self._lives} lives")

    def _live(
        self,
        course: Callable[[Site], Coroutine[Any, Any, None]],
        served: Mapping[str, str],
        plan: LifePlan | None = None,
    ) -> bool:
        """One life of the product; whether it ended in peace."""
        self._lives += 1
        where = None
        with self.machine.life() as life:
            life.loop.max_steps = _MOST_STEPS
            life.loop.freeze(0.2 if plan is None else plan.downtime)
            self._arm(plan)
            site = Site(self._around, self.machine.clock, self._lives, served)
            self._alone.add(self._lives)
            self._around.is_unannounced, self._callers.site = False, site
            self._tell(f"life {self._lives} begins: {plan or 'to the end'}")
            try:
                life.loop.run_until_complete(course(site))
            except CrashError as crash:
                where = str(crash)
            except (StuckError, RunawayError, UnhandledError) as error:
                self._violate("loop", f"{type(error).__name__}: {error} {error.__cause__ or ''}")
            self.verdict.steps += life.loop.steps
        for one in {site, self._callers.site}:
            self._check_errors(one)
        if where is not None:
            self._note_crash(where)
        self._zombie = None
        self.verdict.violations.extend(orphans(self._keeper))
        return where is None

    def _arm(self, plan: LifePlan | None) -> None:
        points, loop = self.machine.crash_points, self.machine.loop
        points.disarm()
        if plan is None:
            return
        match plan.ending:
            case Ending.AT_STEP:
                loop.crash_at_step = plan.nth
            case Ending.AT_POINT:
                points.arm(plan.point, plan.nth)
            case Ending.AT_ANY_POINT:
                points.arm_any(plan.nth)

    async def _follow(self, site: Site, plan: LifePlan) -> None:
        await self._begin(site)
        until = site.loop.time() + plan.seconds
        if plan.disturbance is not None:
            await site.clock.sleep(timedelta(seconds=plan.disturbed_at))
            await self._disturb(site, plan.disturbance)
        await site.clock.sleep(timedelta(seconds=max(until - site.loop.time(), 0)))
        if plan.ending is not Ending.SHUTDOWN:
            site.loop.crash("cut off")
        await self._shut_down()

    async def _finish(self, site: Site, served: Mapping[str, str], *, is_last: bool) -> None:
        await self._begin(site)
        await self._drain(site, served)
        if is_last and self.scenario.last_replay:
            matching = DeadLetterFilter(channel=self.machine.chance.choice(("email", "sms", "push")))
            await site.store.dead_letters.replay(CALLER.tenant, matching, None, "operator", 100)
            site.way.look_again()
            await self._drain(site, served)
        if is_last:
            await self._check_sums(site)
        await self._shut_down()

    async def _begin(self, site: Site) -> None:
        began = site.clock.now()
        await site.way.start()
        if former := self._leased_lanes(site, before=began):
            self._violate("I8", f"{len(former)} leases of a former process stand after the start: {former[0]}")
        self._callers.set_out(site)

    async def _shut_down(self) -> None:
        """W26: whatever is being sent is finished, the rest released; not one message may be doubled by it."""
        site = self._callers.site
        self.verdict.shutdowns += 1
        self.verdict.windows["W26"] += site.way.dispatcher.claimed > 0
        self._callers.is_closing = True
        dead = site.dead_loops()
        await self._end_zombie()
        await site.way.stop()
        await self._callers.come_home()
        if dead:
            self._violate("loop", f"ended by itself: {dead}")
        if left := self._leased_lanes(site):
            self._violate("W26", f"{len(left)} deliveries are still leased after the shutdown: {left[0]}")
        site.store.close()
        self._tell("shut down")

    def _leased_lanes(self, site: Site, before: int = 1 << 62) -> list[str]:
        """The lanes of what is leased through the site's accounts by a claim made before."""
        rows = self._keeper.execute("SELECT lane FROM deliveries WHERE state = 1 AND fence < ?", (before,))
        return [lane for (lane,) in rows if lane.split(".")[1] in site.doors]

    # disturbances

    async def _disturb(self, site: Site, disturbance: Disturbance) -> None:
        self._alone.discard(site.life)
        self._forgive_rests()
        held = {key for key, _ in leased(self._keeper)}
        self._lose_claims(site, held, disturbance)
        if disturbance is Disturbance.FREEZE:
            site.loop.freeze(self.machine.chance.uniform(60, 200))
            return
        clock = SimClock(site.loop)
        # No two clocks agree to the microsecond: that keeps the numbers of the two apart.
        clock.wall_offset = timedelta(microseconds=self.machine.chance.randint(100, 900))
        self._lives += 1
        other = Site(self._around, clock, self._lives, USUAL)
        self._newcomer = (site, held, self._keeper.execute("SELECT coalesce(max(seq), 0) FROM ledger").get)
        await other.way.start()
        self._lose_rescued()
        self._zombie, self._callers.site, self._shared_since = site, other, clock.now()
        await site.clock.sleep(timedelta(seconds=self.machine.chance.uniform(2, 12)))
        if self.machine.chance.random() < 0.5:
            await self._end_zombie()

    def _lose_claims(self, site: Site, keys: set[DeliveryKey], disturbance: Disturbance) -> None:
        taken = self._provider.lose_claims(site.life, keys, may_follow=disturbance is Disturbance.ZOMBIE)
        self._crashes.append(Crash(self.machine.clock.now(), taken, disturbance))
        self._tell(f"{disturbance}: {len(keys)} claims are lost while their holder lives, {taken} of them taken")

    def _lose_rescued(self) -> None:
        """What the newcomer took from the zombie while it started, as far as it came."""
        if self._newcomer is None:
            return
        (site, held, last), self._newcomer = self._newcomer, None
        rows = self._keeper.execute(
            """SELECT notification_id, coalesce(detail ->> 'endpoint', 0) FROM ledger
            WHERE seq > ? AND kind IN ('outcome_unknown', 'dead_lettered')""",
            (last,),
        )
        rescued = {DeliveryKey(CALLER.tenant, raw, endpoint) for raw, endpoint in rows}
        self._lose_claims(site, rescued - held, Disturbance.ZOMBIE)

    async def _end_zombie(self) -> None:
        zombie = self._zombie
        if zombie is not None:
            await zombie.way.stop()
            self._zombie = None
            zombie.store.close()
            self._check_errors(zombie)
            self._forgive_rests(since=self._shared_since)

    def _forgive_rests(self, since: Instant = _NEVER) -> None:
        """A rest that is not in the store cannot be known to the next process; and of two that live at the same
        time (since then) one hears of the other's rests only when it next looks."""
        accounts: Any = self._keeper.execute("SELECT account, blocked_until FROM accounts")
        kept: Mapping[str, int] = dict(accounts.fetchall())
        now = self.machine.clock.now()
        self._provider.rests = [
            rest
            for rest in self._provider.rests
            if rest.begins < since and (rest.ends <= now or kept.get(rest.account, 0) >= rest.ends)
        ]

    # crashes

    def _notice(self, point: str) -> None:
        if point.startswith(("commit.accept.", "commit.address.")):
            self._around.is_unannounced = point.endswith(".after")

    def _note_crash(self, where: str) -> None:
        now = self.machine.clock.now()
        self._lose_rescued()
        self._provider.lose_callers()
        in_flight = sum(self._provider.excuse(key) for key, _ in leased(self._keeper))
        self._crashes.append(Crash(now, in_flight, where))
        self.verdict.crashes += 1
        hit = windows_of_crash(
            keeper=self._keeper,
            asks=self.scenario.asks,
            where=where,
            now=now,
            in_flight=in_flight,
            provider=self._provider,
            is_unannounced=self._around.is_unannounced,
        )
        self.verdict.windows.update(hit)
        self._callers.drop_calls()
        self._forgive_rests(_NEVER if self._zombie is None else self._shared_since)
        self._tell(f"crash at {where}, {in_flight} in flight, hits {', '.join(hit) or 'nothing'}")

    # to the end

    async def _drain(self, site: Site, served: Mapping[str, str]) -> None:
        """Until everything that can be done is done. Where nothing can happen for a while, time is skipped."""
        ignored = "alpha" if "alpha" not in served.values() else ""
        began = site.clock.now()
        for _ in range(_MOST_ROUNDS):
            await site.clock.sleep(_SECOND)
            outlook = look(self._keeper, ignored)
            if outlook.is_empty and self._callers.is_done:
                return
            if self._is_stuck(site, outlook, began):
                return
            self._skip(site, outlook)
        self._violate("I1", "the drain does not end")

    def _skip(self, site: Site, outlook: Outlook) -> None:
        if outlook.leased or any(ask.outstanding for ask in self.scenario.asks):
            return
        now = site.loop.time()
        nexts = [self._callers.next_at(now)]
        if outlook.next_due is not None:
            nexts.append((outlook.next_due - SIM_START) / _MICROSECONDS)
        wait = min((at for at in nexts if at is not None), default=now) - now
        if wait > 2:
            site.loop.freeze(wait - 1)
        elif wait < -5:
            site.loop.freeze(5)  # a rest, an open breaker or a pause: nothing to see here

    def _is_stuck(self, site: Site, outlook: Outlook, began: Instant) -> bool:
        if outlook.next_due is None or not self._callers.is_done:
            return False
        overdue = timedelta(microseconds=site.clock.now() - max(outlook.next_due, began))
        if overdue < _LONGEST_OVERDUE:
            return False
        self._violate("I8", f"something has been due for {overdue}: {outlook}")
        return True

    # judgement

    async def _check_sums(self, site: Site) -> None:
        batches: Any = self._keeper.execute("SELECT batch_id FROM batches").fetchall()
        for (raw,) in batches:
            counts = await site.store.batches.counts(CALLER.tenant, raw)
            if counts is None or sum_up(counts, frozenset()).pending:
                self._violate("I1", f"a batch still counts pending notifications: {counts}")

    def _check_errors(self, site: Site) -> None:
        errors = site.meter.errors
        errors["dispatch_errors_total"] -= min(site.renderer.broken_down, errors["dispatch_errors_total"])
        if +errors:
            self._violate("errors", f"the product stumbled: {dict(+errors)}")

    def _judge(self) -> None:
        for complaint in self._callers.complaints:
            self._violate("callers", complaint)
        facts = read_facts(self._keeper)
        evidence = Evidence(
            facts=facts,
            asks=self.scenario.asks,
            provider=self._provider,
            per_second=self.scenario.per_second,
            alone=self._alone,
            paused=self._callers.paused,
        )
        self.verdict.violations.extend(broken_invariants(evidence))
        # An answer that the network lost may be followed by a copy, as after a crash.
        lost = self._provider.excused - sum(crash.in_flight for crash in self._crashes)
        lost_answers = Crash(SIM_START, lost, "answers lost")
        reckoning = sort_out(facts, self.scenario.asks, self._provider, [*self._crashes, lost_answers])
        self._note_words(reckoning)
        self.verdict.windows["W9"] = sum(len(one.noted("late_result")) for one in facts.notifications.values())
        self.verdict.reached = self.machine.crash_points.reached
        if self._listener is not None:
            for line in tell_fates(facts, self._provider):
                self._listener(line)
        told = [(one.notification_id, one.status, one.at) for one in facts.notifications.values()]
        taken = [(taking.attempt.key, taking.handed_at) for taking in self._provider.takings]
        self.verdict.digest = blake2b(repr((told, taken, self.verdict.steps)).encode(), digest_size=8).hexdigest()

    def _note_words(self, reckoning: Reckoning) -> None:
        self.verdict.words.update({str(word): count for word, count in reckoning.words.items()})
        self.verdict.copies, self.verdict.bound = reckoning.doubled, reckoning.bound
        if not reckoning.is_sound:
            what = Word.LOST if reckoning.words[Word.LOST] else Word.UNEXPECTED
            self._violate(what, render_problems(reckoning, most=3))

    def _violate(self, invariant: str, text: str) -> None:
        self.verdict.violations.append(Violation(invariant, text))
        self._tell(f"VIOLATION of {invariant}: {text}")

    def _tell(self, text: str) -> None:
        if self._listener is not None:
            self._listener(f"{self.machine.loop.time():10.3f}  {text}")
