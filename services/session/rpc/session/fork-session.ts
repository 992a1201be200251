import { Violations } from "../../../common/errors/violations.ts";
import type { CallContext } from "../../../common/grpc/call-context.ts";
import { unary } from "../../../common/grpc/handlers.ts";
import { newId } from "../../../common/ids/new-id.ts";
import {
  ForkSessionRequest,
  type ForkSessionResponse,
} from "../../../gen/ganglion/session/v1/session_service.ts";
import { Event } from "../../../gen/ganglion/types/v1/event.ts";
import type { SessionAgent } from "../../domain/agent/patch-session-agent.ts";
import type { NewEvent } from "../../domain/append.ts";
import { scopeOf } from "../../domain/caller.ts";
import { sessionNotFound } from "../../domain/errors.ts";
import type { ForkedSettings } from "../../ports/fork-store.ts";
import { encodeNewEvent } from "../../store/event-codec.ts";
import { callerOf, requestedBy } from "../caller-of.ts";
import { checkId, checkRequestId, checkText, requestKey } from "../check-request.ts";
import type { Deps } from "../deps.ts";
import { madeSession } from "./made-session.ts";

const METHOD = "ForkSession";

/** Makes a session whose log begins as another's did. */
export const forkSession = (deps: Deps) =>
  unary<ForkSessionRequest, ForkSessionResponse>(async (request, ctx) => {
    checkForkSession(request);
    const scope = scopeOf(callerOf(ctx));
    const source = await deps.sessions.get(request.sessionId, scope, ctx.signal);
    if (!source) throw sessionNotFound(request.sessionId);
    const plain = ForkSessionRequest.encode({ ...request, requestId: "" }).finish();
    const key = requestKey(METHOD, request.requestId, source.workspaceId, plain);
    const known = key && (await madeSession(deps, source.workspaceId, key, ctx));
    if (known) return { session: known };

    const sessionId = newId("sesn");
    const made = await deps.forks.fork(
      {
        sessionId,
        sourceId: source.id,
        scope: source.workspaceId,
        position: request.position,
        request: key,
        bind: (settings) => bind(deps, sessionId, settings, ctx),
        created: (first, position) => createdEvent(first, source.id, position, ctx),
        closing: (settings, position) => closingEvents(request, settings, position, ctx),
      },
      ctx.signal,
    );
    if (made === "request_id_taken" && key) {
      const first = await madeSession(deps, source.workspaceId, key, ctx);
      if (first) return { session: first };
    }
    if (!made || made === "request_id_taken") throw sessionNotFound(request.sessionId);
    ctx.note({ session_id: sessionId });
    deps.announce(sessionId, made.isRunnable);
    return { session: made.session };
  });

function checkForkSession(request: ForkSessionRequest): void {
  const violations = new Violations();
  checkRequestId(violations, request.requestId);
  checkId(violations, "session_id", request.sessionId);
  violations.integer("position", request.position, { min: 0n });
  if (request.title !== undefined) checkText(violations, "title", request.title, 256);
  violations.throwIfAny();
}

function bind(deps: Deps, sessionId: string, settings: ForkedSettings, ctx: CallContext): Promise<void> {
  const agent = JSON.parse(Buffer.from(settings.agentJson).toString("utf8")) as SessionAgent;
  const { workspaceId, vaultIds, ownVaultId, environmentJson, repositories } = settings;
  const binding = {
    sessionId,
    workspaceId,
    ownVaultId,
    vaultIds,
    environmentJson,
    repositories,
    mcpServers: agent.mcp_servers,
    models: [agent.model.id],
  };
  return deps.bindings.bind(binding, ctx);
}

// The fork was made as its source was: what changed there later is in the events that follow.
function createdEvent(
  first: Uint8Array,
  forkedFromSessionId: string,
  forkedAtPosition: bigint,
  ctx: CallContext,
): NewEvent {
  const { body } = Event.decode(first);
  if (body?.$case !== "ganglionSessionCreated") throw new Error("a log does not begin with its session");
  const value = { ...body.value, forkedFromSessionId, forkedAtPosition, requestedBy: requestedBy(ctx) };
  const created = Event.fromPartial({
    traceparent: ctx.traceparent,
    body: { $case: "ganglionSessionCreated", value },
  });
  return encodeNewEvent(created, "ganglion.session_created");
}

function closingEvents(
  request: ForkSessionRequest,
  settings: ForkedSettings,
  sourcePosition: bigint,
  ctx: CallContext,
): NewEvent[] {
  const { traceparent } = ctx;
  const forked = Event.fromPartial({
    traceparent,
    body: {
      $case: "ganglionSessionForked",
      value: { sourceSessionId: request.sessionId, sourcePosition, requestedBy: requestedBy(ctx) },
    },
  });
  const events = [encodeNewEvent(forked, "ganglion.session_forked")];
  if (request.title === undefined || request.title === settings.title) return events;
  const updated = Event.fromPartial({
    traceparent,
    body: { $case: "sessionUpdated", value: { title: request.title, requestedBy: requestedBy(ctx) } },
  });
  return [...events, encodeNewEvent(updated, "session.updated")];
}
