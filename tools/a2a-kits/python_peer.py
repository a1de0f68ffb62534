#!/usr/bin/env python3
"""An agent made with the official Python SDK, for tests of our client. Usage: python_peer.py JSONRPC|HTTP+JSON.

It listens on a free port of the loopback address, prints `listening URL`, and serves until it is killed. Its first answer in
a task asks for more, its second one ends the task. A message that begins with `just talk` is answered with a message and no
task. `GET /seen` is a JSON list of the bodies that were posted, in order.
"""

import json
import socket
import sys

import uvicorn
from a2a.helpers.proto_helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes.agent_card_routes import create_agent_card_routes
from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
from a2a.server.routes.rest_routes import create_rest_routes
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.server.tasks.task_updater import TaskUpdater
from a2a.types import a2a_pb2 as pb
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route


class TwoTurns(AgentExecutor):
    """Asks once, then ends."""

    async def execute(self, context, event_queue):
        words = context.get_user_input()
        if words.startswith("just talk"):
            said = new_text_message(f"You said: {words}", context_id=context.context_id, role=pb.ROLE_AGENT)
            await event_queue.enqueue_event(said)
            return
        first = context.current_task is None
        if first:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        said = updater.new_agent_message([new_text_part(f"You said: {words}")])
        if first:
            await updater.requires_input(said)
        else:
            await updater.complete(said)

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


class Recorder:
    """Keeps the bodies of what is posted, on their way to the application."""

    def __init__(self, app, seen):
        self.app = app
        self.seen = seen

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        chunks = []

        async def tapped():
            message = await receive()
            if message["type"] == "http.request":
                chunks.append(message.get("body", b""))
                if not message.get("more_body"):
                    self.seen.append(json.loads(b"".join(chunks)))
            return message

        await self.app(scope, tapped, send)


def main():
    binding = sys.argv[1]
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    card = pb.AgentCard(
        name="sdk-peer",
        description="Takes two turns.",
        version="1",
        capabilities=pb.AgentCapabilities(streaming=True),
        supported_interfaces=[pb.AgentInterface(url=f"{url}/", protocol_binding=binding, protocol_version="1.0")],
        skills=[pb.AgentSkill(id="turns", name="Turns", description="Asks once, then ends.", tags=["test"])],
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
    )
    handler = DefaultRequestHandler(agent_executor=TwoTurns(), task_store=InMemoryTaskStore(), agent_card=card)
    seen = []
    own = [Route("/seen", lambda _request: JSONResponse(seen)), *create_agent_card_routes(card)]
    bound = create_jsonrpc_routes(handler, "/") if binding == "JSONRPC" else create_rest_routes(handler)
    app = Recorder(Starlette(routes=[*own, *bound]), seen)
    print(f"listening {url}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
