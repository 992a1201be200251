"""A client in another language: it creates a session, sends a message and watches it to the end.

It uses nothing but stubs generated from proto/ and the public gRPC address. What it needs comes from
the environment, as in client.env: GANGLION_GRPC_ADDR, GANGLION_CA and ANTHROPIC_API_KEY (a Ganglion
API key). It prints one JSON object.
"""

import json
import os
import sys
import uuid

import grpc
from ganglion.agent.v1 import agent_service_pb2 as agents
from ganglion.agent.v1 import agent_service_pb2_grpc as agents_grpc
from ganglion.agent.v1 import environment_service_pb2 as environments
from ganglion.agent.v1 import environment_service_pb2_grpc as environments_grpc
from ganglion.session.v1 import session_service_pb2 as sessions
from ganglion.session.v1 import session_service_pb2_grpc as sessions_grpc
from ganglion.types.v1 import content_pb2 as content
from ganglion.types.v1 import event_pb2 as events

DEADLINE_SECONDS = 60


def text_block(text):
    """A text block as the API has it: one JSON object, carried as bytes."""
    return content.ContentBlock(type="text", json=json.dumps({"type": "text", "text": text}).encode())


def main():
    with open(os.environ["GANGLION_CA"], "rb") as authority:
        tls = grpc.ssl_channel_credentials(authority.read())
    key = grpc.access_token_call_credentials(os.environ["ANTHROPIC_API_KEY"])
    credentials = grpc.composite_channel_credentials(tls, key)
    # A keepalive that strict servers and proxies allow: one ping in five minutes (case B136).
    options = [("grpc.keepalive_time_ms", 300_000)]
    with grpc.secure_channel(os.environ["GANGLION_GRPC_ADDR"], credentials, options) as channel:
        run(channel)


def run(channel):
    unique = str(uuid.uuid4())
    agent = agents_grpc.AgentServiceStub(channel).CreateAgent(
        agents.CreateAgentRequest(
            request_id=str(uuid.uuid4()),
            definition_json=json.dumps(
                {
                    "name": "polyglot",
                    "model": "claude-opus-5-5",
                    "tools": [{"type": "agent_toolset_20260401"}],
                }
            ).encode(),
        ),
        timeout=DEADLINE_SECONDS,
    ).agent
    environment = environments_grpc.EnvironmentServiceStub(channel).CreateEnvironment(
        environments.CreateEnvironmentRequest(
            request_id=str(uuid.uuid4()),
            environment_json=json.dumps({"name": f"polyglot-{unique}"}).encode(),
        ),
        timeout=DEADLINE_SECONDS,
    ).environment
    log = sessions_grpc.SessionServiceStub(channel)
    session = log.CreateSession(
        sessions.CreateSessionRequest(
            request_id=unique, agent_id=agent.id, environment_id=environment.id, title="polyglot"
        ),
        timeout=DEADLINE_SECONDS,
    ).session
    log.EmitEvents(
        sessions.EmitEventsRequest(
            session_id=session.id,
            events=[events.Event(user_message=events.UserMessage(content=[text_block("Run: echo hello-from-python")]))],
        ),
        timeout=DEADLINE_SECONDS,
    )
    seen, text, outputs, position = [], [], [], 0
    watch = log.WatchEvents(sessions.WatchEventsRequest(session_id=session.id), timeout=DEADLINE_SECONDS)
    for message in watch:
        # Never count messages: each one carries the position to resume from (case B045).
        position = message.position
        if message.WhichOneof("message") != "event":
            continue
        event = message.event
        seen.append({"position": event.position, "type": event.type})
        if event.WhichOneof("body") == "agent_message":
            text.append(json.loads(event.agent_message.block.json)["text"])
        if event.WhichOneof("body") == "agent_tool_result":
            outputs.extend(json.loads(block.json)["text"] for block in event.agent_tool_result.content)
        if event.WhichOneof("body") == "session_status_idle":
            watch.cancel()
            break
    json.dump(
        {"session_id": session.id, "position": position, "events": seen, "text": text, "outputs": outputs}, sys.stdout
    )


if __name__ == "__main__":
    main()
