import type { Agent } from "../../gen/ganglion/agent/v1/agent_service.ts";
import type { Environment } from "../../gen/ganglion/agent/v1/environment_service.ts";
import type { Session } from "../../gen/ganglion/session/v1/session_service.ts";
import type { ModelUsage } from "../../gen/ganglion/types/v1/content.ts";
import type { Repository } from "../../gen/ganglion/types/v1/repository.ts";
import { budgetToJson, listCostToJson } from "./money.ts";
import { RawJson } from "./raw-json.ts";
import { toRfc3339 } from "./timestamps.ts";

type Json = Record<string, unknown>;

const STATUSES = ["idle", "idle", "running", "rescheduling", "terminated"] as const;

/** agentToJson writes an agent as the REST API shows it; its definition is kept resolved by the registry. */
export function agentToJson(agent: Agent): Json {
  return {
    id: agent.id,
    type: "agent",
    ...parseObject(agent.definitionJson),
    version: agent.version,
    created_at: toRfc3339(agent.createTime),
    updated_at: toRfc3339(agent.updateTime),
    archived_at: toRfc3339(agent.archiveTime),
  };
}

/** environmentToJson writes an environment as the REST API shows it. */
export function environmentToJson(environment: Environment): Json {
  return {
    id: environment.id,
    type: "environment",
    name: environment.name,
    description: environment.description ?? null,
    metadata: environment.metadata,
    config: new RawJson(environment.configJson),
    created_at: toRfc3339(environment.createTime),
    updated_at: toRfc3339(environment.updateTime),
    archived_at: toRfc3339(environment.archiveTime),
  };
}

/** sessionToJson writes a session as the REST API shows it; `now` is for its age. */
export function sessionToJson(session: Session, now: Date): Json {
  const end = session.archiveTime ? Number(session.archiveTime.seconds) : now.getTime() / 1000;
  const seconds = Math.max(0, end - Number(session.createTime?.seconds ?? end));
  return {
    id: session.id,
    type: "session",
    status: STATUSES[session.status] ?? "idle",
    title: session.title === "" ? null : session.title,
    metadata: session.metadata,
    agent: new RawJson(session.agentJson),
    environment_id: session.environmentId,
    resources: session.repositories.map((repository) => repositoryToJson(repository, session)),
    vault_ids: session.vaultIds,
    budget: budgetToJson(session.budget),
    outcome_evaluations: [],
    stats: {
      active_seconds: Number(session.activeMs) / 1000,
      duration_seconds: Math.round(seconds * 1000) / 1000,
    },
    usage: {
      ...usageToJson(session.usage),
      active_seconds: Number(session.activeMs) / 1000,
      list_cost: listCostToJson(session.listCostMicrocents),
    },
    created_at: toRfc3339(session.createTime),
    updated_at: toRfc3339(session.updateTime),
    archived_at: toRfc3339(session.archiveTime),
    deployment_id: null,
  };
}

/** repositoryToJson writes a repository as the REST API shows it; whether there is a token for it is not told. */
export function repositoryToJson(
  { id, url, mountPath, checkout }: Repository,
  { createTime }: Session,
): Json {
  const made = toRfc3339(createTime);
  return {
    id,
    type: "github_repository",
    url,
    mount_path: mountPath,
    ...(checkout?.$case === "branch" ? { checkout: { type: "branch", name: checkout.value } } : {}),
    ...(checkout?.$case === "commit" ? { checkout: { type: "commit", sha: checkout.value } } : {}),
    created_at: made,
    updated_at: made,
  };
}

/** usageToJson writes token totals as the REST API shows them on sessions. */
export function usageToJson(usage: ModelUsage | undefined): Json {
  return {
    input_tokens: Number(usage?.inputTokens ?? 0n),
    output_tokens: Number(usage?.outputTokens ?? 0n),
    cache_read_input_tokens: Number(usage?.cacheReadInputTokens ?? 0n),
    cache_creation: {
      ephemeral_5m_input_tokens: Number(usage?.cacheCreation5mInputTokens ?? 0n),
      ephemeral_1h_input_tokens: Number(usage?.cacheCreation1hInputTokens ?? 0n),
    },
  };
}

function parseObject(bytes: Uint8Array): Json {
  return JSON.parse(Buffer.from(bytes).toString("utf8")) as Json;
}
