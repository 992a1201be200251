import type { Agent } from "../../gen/ganglion/agent/v1/agent_service.ts";
import type { ApiKey } from "../../gen/ganglion/agent/v1/api_key_service.ts";
import type { Environment } from "../../gen/ganglion/agent/v1/environment_service.ts";
import type { Definition } from "../domain/agent/definition.ts";
import type { EnvironmentSpec } from "../domain/environment/resolve-environment.ts";
import type { RequestKey } from "./session-store.ts";

/** What a create did: it made the resource, or its request id was used before, or a rule of the table stood against it. */
export type Created<T> = T | "request_id_taken" | "name_taken" | "no_workspace";

/** A page of a list. */
export interface PageQuery {
  readonly workspaceId: string;
  readonly pageSize: number;
  readonly pageToken: string;
}

/** Which agents a list shows; null = any. */
export interface ListAgentsQuery extends PageQuery {
  readonly includeArchived: boolean;
  readonly createdAtOrAfter: string | null;
  readonly createdAtOrBefore: string | null;
}

/** What decides an update sees. */
export interface AgentState {
  readonly version: number;
  readonly isArchived: boolean;
  readonly definition: Definition;
}

/** Keeps agents and their versions. */
export interface AgentStore {
  create(
    workspaceId: string,
    agentId: string,
    definition: Definition,
    request: RequestKey | null,
    signal?: AbortSignal,
  ): Promise<Created<Agent>>;
  /** One version; 0 = the newest. */
  get(
    agentId: string,
    version: number,
    scope: string | null,
    signal?: AbortSignal,
  ): Promise<Agent | undefined>;
  list(query: ListAgentsQuery, signal?: AbortSignal): Promise<{ agents: Agent[]; nextPageToken: string }>;
  listVersions(
    agentId: string,
    scope: string | null,
    beforeVersion: number | null,
    pageSize: number,
    signal?: AbortSignal,
  ): Promise<{ agents: Agent[]; hasMore: boolean }>;
  /** Stores what `decide` returns as the next version; null = nothing changes. */
  update(
    agentId: string,
    scope: string | null,
    decide: (current: AgentState) => Definition | null,
    signal?: AbortSignal,
  ): Promise<Agent | undefined>;
  archive(agentId: string, scope: string | null, signal?: AbortSignal): Promise<Agent | undefined>;
}

/** Keeps environments. */
export interface EnvironmentStore {
  create(
    workspaceId: string,
    environmentId: string,
    spec: EnvironmentSpec,
    request: RequestKey | null,
    signal?: AbortSignal,
  ): Promise<Created<Environment>>;
  get(environmentId: string, scope: string | null, signal?: AbortSignal): Promise<Environment | undefined>;
  list(
    query: PageQuery & { readonly includeArchived: boolean },
    signal?: AbortSignal,
  ): Promise<{ environments: Environment[]; nextPageToken: string }>;
  update(
    environmentId: string,
    scope: string | null,
    decide: (current: Environment) => EnvironmentSpec,
    signal?: AbortSignal,
  ): Promise<Environment | "name_taken" | undefined>;
  archive(
    environmentId: string,
    scope: string | null,
    signal?: AbortSignal,
  ): Promise<Environment | undefined>;
  delete(environmentId: string, scope: string | null, signal?: AbortSignal): Promise<boolean>;
}

/** Keeps hashes of API keys. */
export interface ApiKeyStore {
  /** Registers a hash; the same hash again in the same workspace answers the record that is there. */
  create(
    workspaceId: string,
    sha256: Uint8Array,
    name: string,
    signal?: AbortSignal,
  ): Promise<ApiKey | "taken">;
  list(query: PageQuery, signal?: AbortSignal): Promise<{ apiKeys: ApiKey[]; nextPageToken: string }>;
  revoke(apiKeyId: string, signal?: AbortSignal): Promise<ApiKey | undefined>;
  /** The key with that hash unless it was revoked. */
  find(sha256: Uint8Array, signal?: AbortSignal): Promise<ApiKey | undefined>;
}

/** Knows which workspaces there are. */
export interface Workspaces {
  exists(workspaceId: string, signal?: AbortSignal): Promise<boolean>;
}

/** Remembers what a create with a request id made. */
export interface RequestIds {
  find(
    workspaceId: string,
    method: string,
    requestId: string,
    signal?: AbortSignal,
  ): Promise<{ digest: Uint8Array; resourceId: string } | undefined>;
}
