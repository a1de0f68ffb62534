#!/usr/bin/env python3
"""Drives every operation of an agent through the official Python client, on both bindings, with and without a tenant.

Usage: python_client.py URL. The agent behind the URL is `examples/conformance`. Prints one line for each check: `ok NAME`,
or `not ok NAME: WHY`. Exits with 0 when it could ask everything, whatever the answers were.
"""

import asyncio
import sys
import traceback
import uuid

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.types import a2a_pb2 as pb
from a2a.utils import errors

BINDINGS = {"json-rpc": "JSONRPC", "rest": "HTTP+JSON"}
TENANTS = ("", "acme")
CHECK_SECONDS_MAX = 30


class Session:
    """One binding and one tenant."""

    def __init__(self, card, http, binding, tenant):
        def client(streaming):
            config = ClientConfig(
                streaming=streaming,
                httpx_client=http,
                supported_protocol_bindings=[BINDINGS[binding]],
                use_client_preference=True,
            )
            return ClientFactory(config).create(card)

        self.card = card
        self.tenant = tenant
        self.client = client(streaming=False)
        self.streaming = client(streaming=True)

    def message(self, behaviour, text="hello", message_id=None, **fields):
        message_id = message_id or f"{behaviour}-{uuid.uuid4()}"
        return pb.Message(message_id=message_id, role=pb.ROLE_USER, parts=[pb.Part(text=text)], **fields)

    async def send(self, message, **configuration):
        """The task that a send without a stream answers with."""
        configuration = pb.SendMessageConfiguration(**configuration)
        request = pb.SendMessageRequest(tenant=self.tenant, message=message, configuration=configuration)
        events = [event async for event in self.client.send_message(request)]
        assert len(events) == 1 and events[0].HasField("task"), events
        return events[0].task

    async def stream(self, message):
        request = pb.SendMessageRequest(tenant=self.tenant, message=message)
        return [event async for event in self.streaming.send_message(request)]

    async def get(self, task_id, **fields):
        return await self.client.get_task(pb.GetTaskRequest(tenant=self.tenant, id=task_id, **fields))

    async def list(self, **fields):
        return await self.client.list_tasks(pb.ListTasksRequest(tenant=self.tenant, **fields))

    async def cancel(self, task_id):
        return await self.client.cancel_task(pb.CancelTaskRequest(tenant=self.tenant, id=task_id))

    async def subscribe(self, task_id):
        request = pb.SubscribeToTaskRequest(tenant=self.tenant, id=task_id)
        return [event async for event in self.streaming.subscribe(request)]


def state(task):
    return pb.TaskState.Name(task.status.state).removeprefix("TASK_STATE_")


def same(left, right):
    assert left == right, f"{left!r} is not {right!r}"


async def refused(error, call):
    try:
        answer = await call
    except error:
        return
    raise AssertionError(f"expected {error.__name__}, got an answer: {answer!r:.200}")


def check_stream(events, task_id, end):
    """A stream begins with the task and ends with the end of its turn; everything is about one task."""
    assert events[0].HasField("task"), events[0]
    assert events[-1].HasField("status_update"), events[-1]
    same(state(events[-1].status_update), end)
    ids = {event.task.id or event.status_update.task_id or event.artifact_update.task_id for event in events}
    same(ids, {task_id or events[0].task.id})


async def send(session):
    task = await session.send(session.message("tck-complete-task"))
    same(state(task), "COMPLETED")
    same(task.artifacts[0].parts[0].text, "Hello from TCK")
    same([message.role for message in task.history][0], pb.ROLE_USER)


async def send_at_once(session):
    task = await session.send(session.message("tck-long-running"), return_immediately=True)
    assert state(task) in ("SUBMITTED", "WORKING"), state(task)
    await session.cancel(task.id)


async def send_again(session):
    message = session.message("tck-complete-task")
    first, again = await session.send(message), await session.send(message)
    same((again.id, again.status), (first.id, first.status))


async def send_history_length(session):
    task = await session.send(session.message("tck-complete-task"), history_length=0)
    same(len(task.history), 0)


async def send_invalid(session):
    await refused(errors.InvalidParamsError, session.send(pb.Message(message_id="m", role=pb.ROLE_USER)))


async def send_media_type(session):
    message = session.message("tck-complete-task")
    message.parts[0].media_type = "image/png"
    await refused(errors.ContentTypeNotSupportedError, session.send(message))


async def send_unknown_task(session):
    message = session.message("tck-complete-task", task_id=str(uuid.uuid4()))
    await refused(errors.TaskNotFoundError, session.send(message))


async def send_ended_task(session):
    task = await session.send(session.message("tck-complete-task"))
    message = session.message("tck-complete-task", task_id=task.id)
    await refused(errors.UnsupportedOperationError, session.send(message))


async def ask_and_reply(session):
    task = await session.send(session.message("tck-input-required"))
    same(state(task), "INPUT_REQUIRED")
    reply = session.message("reply", text="that", task_id=task.id, context_id=task.context_id)
    ended = await session.send(reply)
    same((ended.id, state(ended)), (task.id, "COMPLETED"))


async def reject(session):
    same(state(await session.send(session.message("tck-reject-task"))), "REJECTED")


async def artifact_file(session):
    part = (await session.send(session.message("tck-artifact-file"))).artifacts[0].parts[0]
    same((part.raw, part.filename, part.media_type), (b"tck", "output.txt", "text/plain"))


async def artifact_url(session):
    part = (await session.send(session.message("tck-artifact-file-url"))).artifacts[0].parts[0]
    same((part.url, part.media_type), ("https://example.com/output.txt", "text/plain"))


async def artifact_data(session):
    part = (await session.send(session.message("tck-artifact-data"))).artifacts[0].parts[0]
    value = part.data.struct_value
    same((value["key"], value["count"]), ("value", 42))


async def stream(session):
    events = await session.stream(session.message("tck-stream-artifact-chunked"))
    check_stream(events, None, "COMPLETED")
    updates = [event.artifact_update for event in events if event.HasField("artifact_update")]
    same("".join(update.artifact.parts[0].text for update in updates), "chunk-1 chunk-2")
    same((updates[0].append, updates[-1].last_chunk), (False, True))


async def stream_follow_up(session):
    task = await session.send(session.message("tck-input-required"))
    reply = session.message("reply", text="this", task_id=task.id, context_id=task.context_id)
    check_stream(await session.stream(reply), task.id, "COMPLETED")


async def stream_unknown_task(session):
    message = session.message("tck-complete-task", task_id=str(uuid.uuid4()))
    await refused(errors.TaskNotFoundError, session.stream(message))


async def subscribe(session):
    task = await session.send(session.message("tck-long-running"), return_immediately=True)
    one, two = await asyncio.gather(session.subscribe(task.id), session.subscribe(task.id))
    check_stream(one, task.id, "COMPLETED")
    check_stream(two, task.id, "COMPLETED")


async def subscribe_refused(session):
    task = await session.send(session.message("tck-complete-task"))
    await refused(errors.UnsupportedOperationError, session.subscribe(task.id))
    await refused(errors.TaskNotFoundError, session.subscribe(str(uuid.uuid4())))


async def get(session):
    sent = await session.send(session.message("tck-complete-task"))
    task = await session.get(sent.id)
    same((task.id, task.context_id, task.status), (sent.id, sent.context_id, sent.status))
    same(len((await session.get(sent.id, history_length=1)).history), 1)
    await refused(errors.TaskNotFoundError, session.get(str(uuid.uuid4())))


async def list_tasks(session):
    context = f"list-{uuid.uuid4()}"
    sent = [await session.send(session.message("tck-complete-task", context_id=context)) for _ in range(3)]
    page = await session.list(context_id=context, page_size=2)
    same((page.total_size, len(page.tasks), page.page_size), (3, 2, 2))
    rest = await session.list(context_id=context, page_size=2, page_token=page.next_page_token)
    newest_first = [task.id for task in [*page.tasks, *rest.tasks]]
    same((newest_first, rest.next_page_token), ([task.id for task in reversed(sent)], ""))
    same(len(page.tasks[0].artifacts), 0)
    full = await session.list(context_id=context, include_artifacts=True, status=pb.TASK_STATE_COMPLETED)
    same([len(task.artifacts) for task in full.tasks], [1, 1, 1])
    same((await session.list(context_id=context, status=pb.TASK_STATE_FAILED)).total_size, 0)
    await refused(errors.InvalidParamsError, session.list(page_token="999"))


async def cancel(session):
    task = await session.send(session.message("tck-long-running"), return_immediately=True)
    same(state(await session.cancel(task.id)), "CANCELED")
    same(state(await session.get(task.id)), "CANCELED")
    await refused(errors.TaskNotCancelableError, session.cancel(task.id))
    await refused(errors.TaskNotFoundError, session.cancel(str(uuid.uuid4())))


async def push_configs(session):
    task = await session.send(session.message("tck-input-required"))
    config = pb.TaskPushNotificationConfig(
        tenant=session.tenant, task_id=task.id, url="http://127.0.0.1:9/hook", token="secret-token"
    )
    created = await session.client.create_task_push_notification_config(config)
    assert created.id and created.url == config.url, created
    names = {"tenant": session.tenant, "task_id": task.id}
    one = {**names, "id": created.id}
    read = pb.GetTaskPushNotificationConfigRequest(**one)
    same((await session.client.get_task_push_notification_config(read)).url, config.url)
    listing = pb.ListTaskPushNotificationConfigsRequest(**names)
    listed = await session.client.list_task_push_notification_configs(listing)
    same([item.id for item in listed.configs], [created.id])
    for _ in range(2):
        request = pb.DeleteTaskPushNotificationConfigRequest(**one)
        await session.client.delete_task_push_notification_config(request)
    same(len((await session.client.list_task_push_notification_configs(listing)).configs), 0)


async def extended_card(session):
    request = pb.GetExtendedAgentCardRequest(tenant=session.tenant)
    # The client answers with the card it has when that declares no extended one, and asks otherwise.
    card = await session.client.get_extended_agent_card(request)
    same(card.name, session.card.name)


CHECKS = (
    send,
    send_at_once,
    send_again,
    send_history_length,
    send_invalid,
    send_media_type,
    send_unknown_task,
    send_ended_task,
    ask_and_reply,
    reject,
    artifact_file,
    artifact_url,
    artifact_data,
    stream,
    stream_follow_up,
    stream_unknown_task,
    subscribe,
    subscribe_refused,
    get,
    list_tasks,
    cancel,
    push_configs,
    extended_card,
)


async def run(name, check):
    try:
        await asyncio.wait_for(check, CHECK_SECONDS_MAX)
        print(f"ok {name}", flush=True)
    except Exception as error:  # Whatever it is, it belongs to this check.
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{last.name}:{last.lineno}"
        print(f"not ok {name}: {type(error).__name__} in {where}: {' '.join(str(error).split())[:300]}", flush=True)


async def main(url):
    async with httpx.AsyncClient(timeout=CHECK_SECONDS_MAX, trust_env=False) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        print("ok card", flush=True)
        runs = []
        for binding in BINDINGS:
            for tenant in TENANTS:
                session = Session(card, http, binding, tenant)
                where = f"{binding}.{tenant}" if tenant else binding
                runs += [run(f"{where}.{check.__name__}", check(session)) for check in CHECKS]
        await asyncio.gather(*runs)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
