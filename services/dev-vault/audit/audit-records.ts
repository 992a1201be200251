import type { MountRecord } from "../core/mount-table.ts";
import type { VaultRequest } from "../core/request.ts";
import type { Caller } from "../token/caller.ts";
import { hashText, hashValues } from "./hash-values.ts";

/** AuditFacts is what is known of a request when a record is written. */
export interface AuditFacts {
  readonly request: VaultRequest;
  readonly mount: MountRecord | undefined;
  readonly caller: Caller | undefined;
  readonly isAllowed: boolean;
  readonly error?: string;
}

/** requestRecord is written before anything is done. */
export function requestRecord(facts: AuditFacts, salt: string): object {
  return {
    time: new Date().toISOString(),
    type: "request",
    auth: authOf(facts, salt),
    request: requestOf(facts, salt),
    ...(facts.error === undefined ? {} : { error: facts.error }),
  };
}

/** responseRecord is written before the answer leaves. */
export function responseRecord(
  facts: AuditFacts,
  body: Readonly<Record<string, unknown>>,
  salt: string,
): object {
  return {
    time: new Date().toISOString(),
    type: "response",
    auth: authOf(facts, salt),
    request: requestOf(facts, salt),
    response: { ...mountOf(facts), ...bodyOf(body, salt) },
    ...(facts.error === undefined ? {} : { error: facts.error }),
  };
}

function authOf({ caller, isAllowed }: AuditFacts, salt: string): object {
  if (!caller) return { policy_results: { allowed: isAllowed }, token_type: "default" };
  const { entry } = caller;
  return {
    client_token: hashText(salt, caller.token),
    accessor: hashText(salt, entry.accessor),
    display_name: entry.displayName,
    policies: caller.policies,
    token_policies: entry.policies,
    policy_results: { allowed: isAllowed },
    ...(entry.metadata ? { metadata: entry.metadata } : {}),
    ...(entry.entityId === "" ? {} : { entity_id: entry.entityId }),
    token_type: "service",
    ...(entry.ttlMs > 0 ? { token_ttl: Math.floor(entry.ttlMs / 1000) } : {}),
    token_issue_time: new Date(entry.createdAt).toISOString(),
  };
}

function requestOf(facts: AuditFacts, salt: string): object {
  const { request, caller } = facts;
  const hasData = Object.keys(request.data).length > 0;
  return {
    id: request.id,
    operation: request.operation,
    ...mountOf(facts),
    ...(caller
      ? {
          client_token: hashText(salt, caller.token),
          client_token_accessor: hashText(salt, caller.entry.accessor),
        }
      : {}),
    namespace: { id: "root" },
    path: request.path,
    ...(hasData ? { data: hashValues(salt, request.data) } : {}),
    remote_address: request.remoteAddress,
    remote_port: request.remotePort,
    ...(request.wrapTtlMs > 0 ? { wrap_ttl: Math.floor(request.wrapTtlMs / 1000) } : {}),
  };
}

function mountOf({ mount }: AuditFacts): object {
  if (!mount) return {};
  const path = mount.kind === "auth" ? `auth/${mount.path}` : mount.path;
  return {
    mount_point: path,
    mount_type: mount.type,
    mount_accessor: mount.accessor,
    mount_class: mount.kind,
  };
}

function bodyOf(body: Readonly<Record<string, unknown>>, salt: string): object {
  const { data, auth, wrap_info: wrapInfo, warnings } = body;
  return {
    ...(data ? { data: hashValues(salt, data) } : {}),
    ...(auth ? { auth: hashKeys(auth, ["client_token", "accessor"], salt) } : {}),
    ...(wrapInfo ? { wrap_info: hashKeys(wrapInfo, ["token", "accessor", "wrapped_accessor"], salt) } : {}),
    ...(warnings ? { warnings } : {}),
  };
}

function hashKeys(value: object, keys: readonly string[], salt: string): object {
  const entries = Object.entries(value).map(([key, item]) => [
    key,
    keys.includes(key) && typeof item === "string" ? hashText(salt, item) : item,
  ]);
  return Object.fromEntries(entries);
}
