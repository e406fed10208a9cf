"""Rows: those that a turn inserts for calls: with the policy that is in force, and what is known of their steps."""

from collections.abc import Callable

import msgspec

from watchbill.env import Env
from watchbill.flow.context import Attempt
from watchbill.flow.replay import Call
from watchbill.model.attempt import NewAttempt
from watchbill.scheduler.batch import Batch
from watchbill.scheduler.experience import Experience
from watchbill.scheduler.notes import asked_of
from watchbill.scheduler.overrides import Overrides
from watchbill.scheduler.plan import CallFacts, finished_row, question_row, running_row
from watchbill.scheduler.queues import Queues
from watchbill.scheduler.residence import Resident

_encode = msgspec.json.Encoder().encode


class Rows:
    """Makes the rows of calls; what becomes of them is not its concern."""

    def __init__(self, env: Env, *, agent: int, queues: Queues, experience: Experience, overrides: Overrides) -> None:
        self._env = env
        self.agent = agent
        self._queues = queues
        self._experience = experience
        self._overrides = overrides

    def insert(self, resident: Resident, call: Call, batch: Batch, make: Callable[[CallFacts, int], NewAttempt]) -> int:
        """Put a row for a call into the turn; gives its id."""
        facts = self._facts(resident, call)
        id = resident.rows[call.key] = self._env.new_id()
        batch.turn.terms[resident.shard] = resident.term
        batch.follow(resident)
        batch.insert(make(facts, id))
        return id

    def reveal(self, resident: Resident, call: Call, attempt: Attempt, batch: Batch) -> None:
        """Give a running local attempt its row, which the agent of this process takes over."""
        ago = self._env.clock.boot() - attempt.started_boot
        progress = attempt.take_progress()
        attempt.row = self.insert(
            resident,
            call,
            batch,
            lambda facts, new: running_row(
                facts,
                new,
                fence=attempt.fence,
                agent=self.agent,
                started_ago=ago,
                progress=progress[0] if progress else None,
            ),
        )
        if resident.began is None:
            resident.began = {}
        resident.began[call.key] = attempt.started_at
        batch.handed_over.append(attempt)

    def finish(self, attempt: Attempt) -> NewAttempt | None:
        """Make the row by which a rowless attempt finishes in the user's transaction; None when nobody wants it."""
        resident: Resident
        call: Call
        resident, call = attempt.owner
        if not resident.asks(call) or attempt.finishing is None:
            return None
        if resident.finishing is None:
            resident.finishing = {}
        id = resident.finishing[call.key] = resident.finishing.get(call.key) or self._env.new_id()
        ago = self._env.clock.boot() - attempt.started_boot
        return finished_row(
            self._facts(resident, call),
            id,
            fence=attempt.fence,
            agent=self.agent,
            started_ago=ago,
            result=attempt.finishing.body,
        )

    def put_question(self, resident: Resident, call: Call, batch: Batch) -> None:
        """Put the row of a question into the turn: it waits for a person, and no agent takes it."""
        patience = call.options.left(batch.now)
        facts = CallFacts(
            resident.num, resident.id, resident.part, resident.shard, call.key, "ask", self._queues.plain,
            _encode(patience), call.body, first_look=0, alone=False,
        )  # fmt: skip
        id = resident.rows[call.key] = self._env.new_id()
        batch.turn.terms[resident.shard] = resident.term
        batch.follow(resident)
        batch.insert(question_row(facts, id, resident.term, patience.remind_in))
        batch.turn.decisions.append(asked_of(resident.num, call.key, id, call.body))

    def _facts(self, resident: Resident, call: Call) -> CallFacts:
        step = call.target
        resolved = self._experience.with_usual(step.name, step.resolve(resident.workflow.defaults, call.options))
        resolved = self._overrides.of(step.name, resolved)
        return CallFacts(
            resident.num,
            resident.id,
            resident.part,
            resident.shard,
            call.key,
            step.name,
            self._queues.of(step),
            resolved.policy_body,
            call.body,
            resolved.first_look,
            resolved.policy.own,
            resident.priority + resolved.policy.priority,
            resident.paused,
            None if call.options is None else call.options.gate,
        )
