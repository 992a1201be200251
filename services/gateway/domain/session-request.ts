import type {
  CreateSessionRequest,
  ListSessionsRequest,
  UpdateSessionRequest,
} from "../../gen/ganglion/session/v1/session_service.ts";
import { eventsFromJson } from "./event-from-json.ts";
import { budgetFromJson } from "./money.ts";
import { flagOf, limitOf, one, orderOf, type Query, wholeOf } from "./page-query.ts";
import { asObject, invalid, notYet, optionalText, refuseUnknown, requiredText } from "./refuse.ts";
import { type RepositoryToken, resourcesFromJson } from "./repositories-from-json.ts";
import { fromRfc3339, justAfter } from "./timestamps.ts";

const CREATE_KEYS = [
  "agent",
  "environment_id",
  "title",
  "metadata",
  "vault_ids",
  "resources",
  "initial_events",
  "budget",
];
const UPDATE_KEYS = ["title", "metadata", "agent", "budget", "vault_ids"];
const STATUSES = ["idle", "running", "rescheduling", "terminated"];

/** Query parameters of the session list. */
export const SESSION_LIST_KEYS = [
  "agent_id",
  "agent_version",
  "created_at[gt]",
  "created_at[gte]",
  "created_at[lt]",
  "created_at[lte]",
  "deployment_id",
  "include_archived",
  "limit",
  "memory_store_id",
  "order",
  "page",
  "statuses",
];

/**
 * createSessionRequest reads the body of POST /v1/sessions, and the tokens of its repositories beside it. The request's
 * id makes a repeated call to the session service, after an answer that got lost, one session.
 */
export function createSessionRequest(
  body: Record<string, unknown>,
  requestId: string,
  mintId: () => string,
): { request: CreateSessionRequest; tokens: RepositoryToken[] } {
  refuseUnknown(body, CREATE_KEYS);
  const { repositories, tokens } = resourcesFromJson(body.resources);
  const agent = readAgent(body.agent);
  const request = {
    requestId,
    ...agent,
    environmentId: requiredText(body.environment_id, "environment_id"),
    title: optionalText(body.title, "title") ?? "",
    metadata: readMetadata(body.metadata),
    vaultIds: readVaultIds(body.vault_ids),
    initialEvents: hasItems(body.initial_events)
      ? eventsFromJson(body.initial_events, "initial_events", mintId)
      : [],
    workspaceId: "",
    budget: isGiven(body.budget) ? budgetFromJson(body.budget) : undefined,
    repositories,
    ownVaultId: "",
  };
  return { request, tokens };
}

/** updateSessionRequest reads the body of POST /v1/sessions/{id}. */
export function updateSessionRequest(sessionId: string, body: Record<string, unknown>): UpdateSessionRequest {
  refuseUnknown(body, UPDATE_KEYS);
  if (body.vault_ids !== undefined) throw invalid("vault_ids", "cannot be changed");
  const metadata = body.metadata === undefined ? {} : asObject(body.metadata, "metadata");
  const set: Record<string, string> = {};
  const remove: string[] = [];
  for (const [key, value] of Object.entries(metadata)) {
    if (value === null) remove.push(key);
    else if (typeof value === "string") set[key] = value;
    else throw invalid(`metadata.${key}`, "must be a string or null");
  }
  const title = body.title === undefined ? undefined : (optionalText(body.title, "title") ?? "");
  return {
    sessionId,
    title,
    metadataSet: set,
    metadataRemove: remove,
    ...readLists(body.agent),
    budget: isGiven(body.budget) ? budgetFromJson(body.budget) : undefined,
    removeBudget: body.budget === null,
  };
}

/** listSessionsRequest reads the query of GET /v1/sessions. */
export function listSessionsRequest(query: Query): ListSessionsRequest {
  for (const key of ["deployment_id", "memory_store_id"]) if (query[key]) throw notYet(key);
  const time = (name: string) => {
    const text = one(query, name);
    return text === undefined ? undefined : fromRfc3339(text, name);
  };
  const [gt, gte, lt, lte] = ["gt", "gte", "lt", "lte"].map((end) => time(`created_at[${end}]`));
  return {
    pageSize: limitOf(query, 20, 100),
    pageToken: one(query, "page") ?? "",
    agentId: one(query, "agent_id") ?? "",
    agentVersion: wholeOf(query, "agent_version"),
    statuses: (query.statuses ?? []).map(readStatus),
    includeArchived: flagOf(query, "include_archived"),
    order: orderOf(query, "desc") === "asc" ? 1 : 2,
    createdAtOrAfter: gte ?? (gt && justAfter(gt)),
    createdBefore: lt ?? (lte && justAfter(lte)),
    workspaceId: "",
  };
}

function readStatus(text: string): 1 | 2 | 3 | 4 {
  const index = STATUSES.indexOf(text);
  if (index < 0) throw invalid("statuses", `must be of ${STATUSES.join(", ")}`);
  return (index + 1) as 1 | 2 | 3 | 4;
}

function readAgent(value: unknown): { agentId: string; agentVersion: number } {
  if (typeof value === "string") return { agentId: requiredText(value, "agent"), agentVersion: 0 };
  if (value === undefined || value === null) throw invalid("agent", "is required");
  const agent = asObject(value, "agent");
  if (agent.type === "agent_with_overrides") throw notYet("agent.type agent_with_overrides");
  if (agent.type !== "agent") throw invalid("agent.type", "must be agent");
  refuseUnknown(agent, ["type", "id", "version"], "agent.");
  const { version } = agent;
  const isVersion =
    version === undefined || version === null || (Number.isInteger(version) && (version as number) >= 1);
  if (!isVersion) throw invalid("agent.version", "must be a whole number from 1");
  return {
    agentId: requiredText(agent.id, "agent.id"),
    agentVersion: (version as number | null | undefined) ?? 0,
  };
}

/** The lists of an agent that a session may have of its own; null empties one. */
function readLists(value: unknown): Pick<UpdateSessionRequest, "agentToolsJson" | "agentMcpServersJson"> {
  if (value === undefined) return {};
  const agent = asObject(value, "agent");
  refuseUnknown(agent, ["tools", "mcp_servers"], "agent.");
  const { tools, mcp_servers: servers } = agent;
  return {
    ...(tools === undefined ? {} : { agentToolsJson: listJson(tools, "agent.tools") }),
    ...(servers === undefined ? {} : { agentMcpServersJson: listJson(servers, "agent.mcp_servers") }),
  };
}

function listJson(value: unknown, path: string): Buffer {
  if (value !== null && !Array.isArray(value)) throw invalid(path, "must be a list");
  return Buffer.from(JSON.stringify(value ?? []));
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function readMetadata(value: unknown): Record<string, string> {
  if (value === undefined || value === null) return {};
  const metadata = asObject(value, "metadata");
  for (const [key, text] of Object.entries(metadata)) {
    if (typeof text !== "string") throw invalid(`metadata.${key}`, "must be a string");
  }
  return metadata as Record<string, string>;
}

function readVaultIds(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw invalid("vault_ids", "must be a list");
  return value.map((id, index) => requiredText(id, `vault_ids[${index}]`));
}

function hasItems(value: unknown): boolean {
  return value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0);
}
