import { Violations } from "../../../common/errors/violations.ts";
import type { CallContext } from "../../../common/grpc/call-context.ts";
import { unary } from "../../../common/grpc/handlers.ts";
import {
  type Session,
  SessionStatus,
  type UpdateSessionRequest,
  type UpdateSessionResponse,
} from "../../../gen/ganglion/session/v1/session_service.ts";
import { Event } from "../../../gen/ganglion/types/v1/event.ts";
import { MAX_DEFINITION_BYTES } from "../../domain/agent/definition.ts";
import { patchSessionAgent, type SessionAgent } from "../../domain/agent/patch-session-agent.ts";
import { scopeOf } from "../../domain/caller.ts";
import {
  budgetCreateOnly,
  budgetNotRaised,
  invalidField,
  sessionNotFound,
  sessionRunning,
} from "../../domain/errors.ts";
import { checkMetadataPair, METADATA_MAX_PAIRS, Shape } from "../../domain/json-shape.ts";
import type { SessionChange } from "../../ports/session-store.ts";
import { encodeNewEvent } from "../../store/event-codec.ts";
import { writeMetadata } from "../../store/session-row.ts";
import { callerOf, requestedBy } from "../caller-of.ts";
import { checkId, checkText } from "../check-request.ts";
import type { Deps } from "../deps.ts";
import { checkBudget } from "./check-budget.ts";

const MICROCENTS_IN_A_CENT = 1_000_000n;

/** Changes title, metadata and budget, and what tools and MCP servers this session alone has. */
export const updateSession = (deps: Deps) =>
  unary<UpdateSessionRequest, UpdateSessionResponse>(async (request, ctx) => {
    checkUpdateSession(request);
    const scope = scopeOf(callerOf(ctx));
    const decide = (current: Session) => changeOf(deps, current, request, ctx);
    const changed = await deps.sessions.update(request.sessionId, scope, decide, ctx.signal);
    if (!changed) throw sessionNotFound(request.sessionId);
    const mayGoOn = request.budget !== undefined || request.removeBudget;
    if (changed.head !== null) deps.announce(request.sessionId, mayGoOn);
    return { session: changed.session };
  });

function checkUpdateSession(request: UpdateSessionRequest): void {
  const violations = new Violations();
  checkId(violations, "session_id", request.sessionId);
  if (request.title !== undefined) checkText(violations, "title", request.title, 256);
  const pairs = Object.entries(request.metadataSet);
  violations.count("metadata_set", pairs.length, { max: METADATA_MAX_PAIRS });
  for (const [key, value] of pairs) checkMetadataPair(new Shape(violations), "metadata_set", key, value);
  violations.count("metadata_remove", request.metadataRemove.length, { max: METADATA_MAX_PAIRS });
  request.metadataRemove.forEach((key, index) => {
    violations.check(!Object.hasOwn(request.metadataSet, key), `metadata_remove[${index}]`, "is also set");
    checkText(violations, `metadata_remove[${index}]`, key, 64);
  });
  for (const [field, json] of [
    ["agent_tools_json", request.agentToolsJson],
    ["agent_mcp_servers_json", request.agentMcpServersJson],
  ] as const) {
    if (json) violations.bytes(field, json, { required: true, maxBytes: MAX_DEFINITION_BYTES });
  }
  if (request.budget) {
    checkBudget(violations, request.budget);
    violations.check(!request.removeBudget, "remove_budget", "cannot be used together with budget");
  }
  violations.throwIfAny();
}

// Only what really changes is said: a client that repeats itself adds nothing to the log.
async function changeOf(
  deps: Deps,
  current: Session,
  request: UpdateSessionRequest,
  ctx: CallContext,
): Promise<SessionChange | null> {
  const title = request.title !== undefined && request.title !== current.title ? request.title : null;
  const metadata = changedMetadata(current, request);
  const budgetCents = changedBudget(current, request);
  const agentJson = await changedAgent(deps, current, request, ctx);
  if (title === null && metadata === null && agentJson === null && budgetCents === undefined) return null;
  const event = Event.fromPartial({
    traceparent: ctx.traceparent,
    body: {
      $case: "sessionUpdated",
      value: {
        title: title ?? undefined,
        metadata: metadata ? { entries: metadata } : undefined,
        agentJson: agentJson ?? Buffer.alloc(0),
        requestedBy: requestedBy(ctx),
        budget: typeof budgetCents === "bigint" ? { maxListCostCents: budgetCents } : undefined,
        isBudgetRemoved: budgetCents === null,
      },
    },
  });
  return { title, metadata, agentJson, budgetCents, event: encodeNewEvent(event, "session.updated") };
}

function changedMetadata(current: Session, request: UpdateSessionRequest): Record<string, string> | null {
  const merged = { ...current.metadata, ...request.metadataSet };
  for (const key of request.metadataRemove) delete merged[key];
  if (Object.keys(merged).length > METADATA_MAX_PAIRS) {
    throw invalidField("metadata_set", `would make more than ${METADATA_MAX_PAIRS} pairs`);
  }
  return writeMetadata(merged).equals(writeMetadata(current.metadata)) ? null : merged;
}

/** The new limit; null = none any more, undefined = as it was. */
function changedBudget(current: Session, request: UpdateSessionRequest): bigint | null | undefined {
  const limit = current.budget?.maxListCostCents;
  if (request.removeBudget) return limit === undefined ? undefined : null;
  if (!request.budget) return undefined;
  if (limit === undefined) throw budgetCreateOnly();
  const asked = request.budget.maxListCostCents;
  if (asked === limit) return undefined;
  const used = current.listCostMicrocents ?? 0n;
  if (asked * MICROCENTS_IN_A_CENT <= used) throw budgetNotRaised(used);
  return asked;
}

async function changedAgent(
  deps: Deps,
  current: Session,
  request: UpdateSessionRequest,
  ctx: CallContext,
): Promise<Buffer | null> {
  if (!request.agentToolsJson && !request.agentMcpServersJson) return null;
  if (current.status !== SessionStatus.SESSION_STATUS_IDLE) throw sessionRunning();
  const agent = JSON.parse(Buffer.from(current.agentJson).toString("utf8")) as SessionAgent;
  const patched = patchSessionAgent(agent, {
    tools: request.agentToolsJson,
    mcpServers: request.agentMcpServersJson,
  });
  const agentJson = Buffer.from(JSON.stringify(patched));
  if (agentJson.equals(current.agentJson)) return null;
  if (agentJson.length > MAX_DEFINITION_BYTES) {
    throw invalidField(
      "agent_tools_json",
      `makes an agent that is larger than ${MAX_DEFINITION_BYTES} bytes`,
    );
  }
  if (JSON.stringify(patched.mcp_servers) !== JSON.stringify(agent.mcp_servers)) {
    const { id: sessionId, ...bound } = current;
    const { mcp_servers: mcpServers, model } = patched;
    await deps.bindings.rebind({ ...bound, sessionId, mcpServers, models: [model.id] }, ctx);
  }
  return agentJson;
}
