import { GanglionError } from "../../../common/errors/ganglion-error.ts";
import { Violations } from "../../../common/errors/violations.ts";
import type { CallContext } from "../../../common/grpc/call-context.ts";
import { unary } from "../../../common/grpc/handlers.ts";
import { newId } from "../../../common/ids/new-id.ts";
import type { Agent } from "../../../gen/ganglion/agent/v1/agent_service.ts";
import type { Environment } from "../../../gen/ganglion/agent/v1/environment_service.ts";
import {
  CreateSessionRequest,
  type CreateSessionResponse,
} from "../../../gen/ganglion/session/v1/session_service.ts";
import { Event } from "../../../gen/ganglion/types/v1/event.ts";
import { checkContext, contextOf } from "../../domain/agent/context-choice.ts";
import type { Definition } from "../../domain/agent/definition.ts";
import { sessionAgent } from "../../domain/agent/session-agent.ts";
import { modelNotBudgetable, notFound, sessionNotFound } from "../../domain/errors.ts";
import { payloadRefs } from "../../domain/events/payload-refs.ts";
import { checkMetadataPair, METADATA_MAX_PAIRS, Shape } from "../../domain/json-shape.ts";
import { checkRepositories, completeRepositories } from "../../domain/repositories.ts";
import type { FirstEvent, NewSession, RequestKey } from "../../ports/session-store.ts";
import { encodeNewEvent } from "../../store/event-codec.ts";
import { writeMetadata } from "../../store/session-row.ts";
import { actorOf, callerOf, existingWorkspace, requestedBy } from "../caller-of.ts";
import { checkId, checkRequestId, checkText, requestKey } from "../check-request.ts";
import type { Deps } from "../deps.ts";
import { checkBudget } from "./check-budget.ts";
import { parseEvents } from "./emit-events.ts";
import { madeSession } from "./made-session.ts";

const METHOD = "CreateSession";
const MAX_INITIAL_EVENTS = 50;
const MAX_VAULTS = 20;

/** Makes a session: bound at mcp-proxy first, visible afterwards, with its first events or not at all. */
export const createSession = (deps: Deps) =>
  unary<CreateSessionRequest, CreateSessionResponse>(async (request, ctx) => {
    checkCreateSession(request);
    const workspaceId = await existingWorkspace(deps.workspaces, ctx, request.workspaceId);
    const initial = parseEvents(
      "initial_events",
      request.initialEvents,
      { ...callerOf(ctx), role: "CLIENT" },
      deps.rules,
    );
    const key = digestOf(request, workspaceId);
    const known = key && (await madeSession(deps, workspaceId, key, ctx));
    if (known) return { session: known };

    const agent = await usableAgent(deps, request, workspaceId, ctx);
    const environment = await usableEnvironment(deps, request, workspaceId, ctx);
    const definition = JSON.parse(Buffer.from(agent.definitionJson).toString("utf8")) as Definition;
    checkContext(definition.metadata);
    const session = newSession(deps, request, ctx, { workspaceId, key, agent, definition, environment });
    await deps.bindings.bind(
      {
        sessionId: session.sessionId,
        workspaceId,
        ownVaultId: session.ownVaultId,
        vaultIds: request.vaultIds,
        mcpServers: definition.mcp_servers,
        models: [definition.model.id],
        environmentJson: session.environmentJson,
        repositories: session.repositories,
      },
      ctx,
    );
    const events = [...session.events, ...startingWith(deps, initial, actorOf(ctx))];
    const outcome = await deps.sessions.create({ ...session, events }, ctx.signal);
    if (outcome === "request_id_taken" && key) {
      const made = await madeSession(deps, workspaceId, key, ctx);
      if (made) return { session: made };
    }
    ctx.note({ session_id: session.sessionId });
    deps.announce(session.sessionId, initial.length > 0);
    const made = await deps.sessions.get(session.sessionId, workspaceId, ctx.signal);
    if (!made) throw sessionNotFound(session.sessionId);
    return { session: made };
  });

function checkCreateSession(request: CreateSessionRequest): void {
  const violations = new Violations();
  checkRequestId(violations, request.requestId);
  checkId(violations, "agent_id", request.agentId);
  violations.integer("agent_version", request.agentVersion, { min: 0 });
  checkId(violations, "environment_id", request.environmentId);
  checkText(violations, "title", request.title, 256);
  if (request.budget) checkBudget(violations, request.budget);
  const pairs = Object.entries(request.metadata);
  violations.count("metadata", pairs.length, { max: METADATA_MAX_PAIRS });
  for (const [name, value] of pairs) checkMetadataPair(new Shape(violations), "metadata", name, value);
  if (request.ownVaultId !== "") {
    checkId(violations, "own_vault_id", request.ownVaultId);
    violations.check(!request.vaultIds.includes(request.ownVaultId), "own_vault_id", "is also in vault_ids");
  }
  const ownVaults = request.ownVaultId === "" ? 0 : 1;
  violations.count("vault_ids", request.vaultIds.length, { max: MAX_VAULTS - ownVaults });
  checkRepositories(violations, request.repositories);
  request.vaultIds.forEach((id, index) => {
    checkId(violations, `vault_ids[${index}]`, id);
    violations.check(request.vaultIds.indexOf(id) === index, `vault_ids[${index}]`, "is there twice");
  });
  violations.count("initial_events", request.initialEvents.length, { max: MAX_INITIAL_EVENTS });
  request.initialEvents.forEach(({ body }, index) => {
    violations.check(
      body?.$case === "userMessage",
      `initial_events[${index}].body`,
      "must be a user.message",
    );
  });
  for (const { path } of payloadRefs("initial_events", request.initialEvents)) {
    violations.add(path, "names content that a session which is not there yet cannot have");
  }
  violations.throwIfAny();
}

// Maps have no order on the wire: the digest takes the metadata sorted.
function digestOf(request: CreateSessionRequest, workspaceId: string): RequestKey | null {
  const plain = CreateSessionRequest.encode({
    ...request,
    requestId: "",
    workspaceId: "",
    metadata: {},
  }).finish();
  return requestKey(METHOD, request.requestId, workspaceId, plain, writeMetadata(request.metadata));
}

async function usableAgent(
  deps: Deps,
  request: CreateSessionRequest,
  workspaceId: string,
  ctx: CallContext,
): Promise<Agent> {
  const agent = await deps.agents.get(request.agentId, request.agentVersion, workspaceId, ctx.signal);
  if (!agent) throw notFound("agent", request.agentId);
  if (agent.archiveTime) throw archived("AGENT_ARCHIVED", "the agent is archived");
  return agent;
}

async function usableEnvironment(
  deps: Deps,
  request: CreateSessionRequest,
  workspaceId: string,
  ctx: CallContext,
): Promise<Environment> {
  const environment = await deps.environments.get(request.environmentId, workspaceId, ctx.signal);
  if (!environment) throw notFound("environment", request.environmentId);
  if (environment.archiveTime) throw archived("ENVIRONMENT_ARCHIVED", "the environment is archived");
  return environment;
}

function archived(reason: string, message: string): GanglionError {
  return new GanglionError({ code: "FAILED_PRECONDITION", reason, message });
}

interface Parts {
  workspaceId: string;
  key: RequestKey | null;
  agent: Agent;
  definition: Definition;
  environment: Environment;
}

function newSession(deps: Deps, request: CreateSessionRequest, ctx: CallContext, parts: Parts): NewSession {
  const { workspaceId, key, agent, definition, environment } = parts;
  const price = deps.prices.priceOf(definition.model.id);
  if (request.budget && !price) throw modelNotBudgetable(definition.model.id);
  const repositories = completeRepositories(request.repositories);
  const { ownVaultId } = request;
  const agentJson = Buffer.from(JSON.stringify(sessionAgent(agent.id, agent.version, definition)));
  const created = Event.fromPartial({
    traceparent: ctx.traceparent,
    body: {
      $case: "ganglionSessionCreated",
      value: {
        agentJson,
        environmentJson: environment.configJson,
        environmentId: environment.id,
        vaultIds: request.vaultIds,
        workspaceId,
        title: request.title,
        metadata: request.metadata,
        ...contextOf(definition.metadata),
        requestedBy: requestedBy(ctx),
        budget: request.budget,
        price,
        repositories,
        ownVaultId,
      },
    },
  });
  return {
    sessionId: newId("sesn"),
    workspaceId,
    request: key,
    agentId: agent.id,
    agentVersion: agent.version,
    environmentId: environment.id,
    title: request.title,
    metadata: request.metadata,
    agentJson,
    environmentJson: environment.configJson,
    vaultIds: request.vaultIds,
    ownVaultId,
    repositories,
    budgetCents: request.budget?.maxListCostCents ?? null,
    events: [{ event: encodeNewEvent(created, "ganglion.session_created"), actor: deps.actor }],
  };
}

// A session that is made with input begins to work at once, and its log says so.
function startingWith(
  deps: Deps,
  initial: readonly FirstEvent["event"][],
  actor: FirstEvent["actor"],
): FirstEvent[] {
  if (initial.length === 0) return [];
  const running = Event.fromPartial({ body: { $case: "sessionStatusRunning", value: {} } });
  return [
    ...initial.map((event) => ({ event, actor })),
    { event: encodeNewEvent(running, "session.status_running"), actor: deps.actor },
  ];
}
