"""Inbox: the questions that wait for a person, and their answers."""

from watchbill.model.facts import FactKind
from watchbill.model.question import Asked
from watchbill.model.states import RunState
from watchbill.store.protocol import Told
from watchbill.store.sqlite.database import Database, Named, Writer


def inbox(db: Database, namespace: str, limit: int) -> list[Asked]:
    """Read what is asked."""
    rows = db.run("inbox", {"namespace": namespace, "limit": limit}).fetchall()
    return [
        Asked(id, run_id, call, db.whole(run, body), asked_at, refused, answered_by)
        for id, run_id, call, run, body, asked_at, refused, answered_by in rows
    ]


def answer(db: Writer, namespace: str, question: int, actor: str, body: bytes) -> Told:
    """Tell an answer, unless there is one."""
    asking = db.run("find_question", {"namespace": namespace, "question": question}).fetchone()
    if asking is None:
        return Told.UNKNOWN
    run, shard, status = asking
    if RunState(status).terminal:
        return Told.ENDED
    fact: Named = {"shard": shard, "run": run, "kind": FactKind.ANSWER, "ref": f"{question:x}"}
    db.run("tell_fact", {**fact, "actor": actor, "body": body, "now": db.now()})
    there = db.run("find_answer", fact).fetchone()
    return Told.TOLD if there == (actor, body) else Told.ANSWERED
