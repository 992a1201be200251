import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { Violations } from "../../common/errors/violations.ts";
import { implement, unary } from "../../common/grpc/handlers.ts";
import { newId } from "../../common/ids/new-id.ts";
import { type Agent, AgentServiceService } from "../../gen/ganglion/agent/v1/agent_service.ts";
import { type Definition, MAX_DEFINITION_BYTES } from "../domain/agent/definition.ts";
import { isSameDefinition, patchAgent, resolveAgent } from "../domain/agent/resolve-agent.ts";
import { scopeOf } from "../domain/caller.ts";
import { idReused, invalidField, notFound, workspaceNotFound } from "../domain/errors.ts";
import { parseJsonObject } from "../domain/json-shape.ts";
import { callerOf, existingWorkspace, requestedWorkspace } from "./caller-of.ts";
import {
  checkId,
  checkPageSize,
  checkPageToken,
  checkRequestId,
  checkTime,
  requestKey,
} from "./check-request.ts";
import type { Deps } from "./deps.ts";

const METHOD = "CreateAgent";

/** AgentService with its handlers. */
export const agentService = (deps: Deps) =>
  implement(AgentServiceService, {
    createAgent: createAgent(deps),
    getAgent: unary(async ({ agentId, version }, ctx) => {
      const violations = new Violations();
      checkId(violations, "agent_id", agentId);
      violations.integer("version", version, { min: 0 });
      violations.throwIfAny();
      return {
        agent: found(await deps.agents.get(agentId, version, scopeOf(callerOf(ctx)), ctx.signal), agentId),
      };
    }),
    listAgents: unary(async (request, ctx) => {
      const violations = new Violations();
      const pageSize = checkPageSize(violations, request.pageSize);
      checkPageToken(violations, request.pageToken);
      const createdAtOrAfter = checkTime(violations, "created_at_or_after", request.createdAtOrAfter);
      const createdAtOrBefore = checkTime(violations, "created_at_or_before", request.createdAtOrBefore);
      violations.throwIfAny();
      const workspaceId = await existingWorkspace(deps.workspaces, ctx, request.workspaceId);
      const { pageToken, includeArchived } = request;
      return deps.agents.list(
        { workspaceId, pageSize, pageToken, includeArchived, createdAtOrAfter, createdAtOrBefore },
        ctx.signal,
      );
    }),
    listAgentVersions: listAgentVersions(deps),
    updateAgent: updateAgent(deps),
    archiveAgent: unary(async ({ agentId }, ctx) => {
      checkAgentId(agentId);
      return {
        agent: found(await deps.agents.archive(agentId, scopeOf(callerOf(ctx)), ctx.signal), agentId),
      };
    }),
  });

type Handlers = typeof AgentServiceService;
type RequestOf<M extends keyof Handlers> = ReturnType<Handlers[M]["requestDeserialize"]>;

const createAgent = (deps: Deps) =>
  unary(async (request: RequestOf<"createAgent">, ctx) => {
    const violations = new Violations();
    checkRequestId(violations, request.requestId);
    violations.bytes("definition_json", request.definitionJson, {
      required: true,
      maxBytes: MAX_DEFINITION_BYTES,
    });
    violations.throwIfAny();
    const workspaceId = requestedWorkspace(ctx, request.workspaceId);
    const body = parseJsonObject("definition_json", request.definitionJson);
    const definition = bounded("definition_json", resolveAgent("definition_json", body));
    const key = requestKey(METHOD, request.requestId, workspaceId, request.definitionJson);
    const created = await deps.agents.create(workspaceId, newId("agent"), definition, key, ctx.signal);
    if (created === "no_workspace") throw workspaceNotFound(workspaceId);
    if (typeof created !== "string") return { agent: created };
    const made = await deps.requestIds.find(workspaceId, METHOD, request.requestId, ctx.signal);
    if (!made || !key || Buffer.compare(made.digest, key.digest) !== 0) throw idReused(request.requestId);
    return {
      agent: found(await deps.agents.get(made.resourceId, 1, workspaceId, ctx.signal), made.resourceId),
    };
  });

const listAgentVersions = (deps: Deps) =>
  unary(async ({ agentId, pageSize: asked, pageToken }: RequestOf<"listAgentVersions">, ctx) => {
    const violations = new Violations();
    checkId(violations, "agent_id", agentId);
    const pageSize = checkPageSize(violations, asked);
    // Versions are dense and immutable: the token is the last version shown.
    violations.string("page_token", pageToken, {
      pattern: /^v[1-9]\d{0,8}$/,
      patternMeans: "a token of this list",
    });
    violations.throwIfAny();
    const before = pageToken === "" ? null : Number(pageToken.slice(1));
    const scope = scopeOf(callerOf(ctx));
    const { agents, hasMore } = await deps.agents.listVersions(agentId, scope, before, pageSize, ctx.signal);
    if (agents.length === 0) found(await deps.agents.get(agentId, 0, scope, ctx.signal), agentId);
    return { agents, nextPageToken: hasMore ? `v${agents.at(-1)?.version}` : "" };
  });

const updateAgent = (deps: Deps) =>
  unary(async ({ agentId, expectedVersion, patchJson }: RequestOf<"updateAgent">, ctx) => {
    const violations = new Violations();
    checkId(violations, "agent_id", agentId);
    violations.integer("expected_version", expectedVersion, { min: 0 });
    violations.bytes("patch_json", patchJson, { required: true, maxBytes: MAX_DEFINITION_BYTES });
    violations.throwIfAny();
    const patch = parseJsonObject("patch_json", patchJson);
    const agent = await deps.agents.update(
      agentId,
      scopeOf(callerOf(ctx)),
      ({ version, isArchived, definition }) => {
        // Compared even when nothing would change: the caller speaks of a version it has not seen.
        if (expectedVersion !== 0 && expectedVersion !== version) throw versionConflict(version);
        if (isArchived) throw agentArchived();
        const next = bounded("patch_json", patchAgent("patch_json", definition, patch));
        return isSameDefinition(next, definition) ? null : next;
      },
      ctx.signal,
    );
    return { agent: found(agent, agentId) };
  });

// What is filled in counts as well: every session carries the whole definition.
function bounded(field: string, definition: Definition): Definition {
  if (Buffer.byteLength(JSON.stringify(definition)) > MAX_DEFINITION_BYTES) {
    throw invalidField(field, `makes a definition that is larger than ${MAX_DEFINITION_BYTES} bytes`);
  }
  return definition;
}

function found(agent: Agent | undefined, agentId: string): Agent {
  if (!agent) throw notFound("agent", agentId);
  return agent;
}

function checkAgentId(agentId: string): void {
  const violations = new Violations();
  checkId(violations, "agent_id", agentId);
  violations.throwIfAny();
}

function versionConflict(version: number): GanglionError {
  return new GanglionError({
    code: "ABORTED",
    reason: "VERSION_CONFLICT",
    message: "the agent's version is not the one expected",
    metadata: { version: String(version) },
  });
}

function agentArchived(): GanglionError {
  return new GanglionError({
    code: "FAILED_PRECONDITION",
    reason: "AGENT_ARCHIVED",
    message: "the agent is archived and cannot change",
  });
}
