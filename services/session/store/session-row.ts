import { type Lease, Session, SessionStatus } from "../../gen/ganglion/session/v1/session_service.ts";
import { ModelUsage } from "../../gen/ganglion/types/v1/content.ts";
import { StopReason } from "../../gen/ganglion/types/v1/event.ts";
import { Repository } from "../../gen/ganglion/types/v1/repository.ts";
import type { Status } from "../domain/append.ts";
import type { Row } from "./database.ts";
import { toOptionalTimestamp, toTimestamp } from "./pg-time.ts";

const STATUS_TO_PROTO: Readonly<Record<Status, SessionStatus>> = {
  idle: SessionStatus.SESSION_STATUS_IDLE,
  running: SessionStatus.SESSION_STATUS_RUNNING,
  rescheduling: SessionStatus.SESSION_STATUS_RESCHEDULING,
  terminated: SessionStatus.SESSION_STATUS_TERMINATED,
};

/** Columns of a session's record; sessions are `s`, their settings `t`. */
export const SESSION_COLUMNS = `s.workspace_id, s.session_id, s.head, s.status, s.owner, s.epoch, s.agent_id,
  s.agent_version, s.environment_id, s.usage, s.active_ms, s.stop_reason, s.created_at, s.updated_at, s.archived_at,
  s.list_cost, t.title, t.metadata, t.agent_json, t.vault_ids, t.budget_cents, t.forked_from, t.forked_at,
  t.environment_json, t.repositories, t.own_vault_id`;

/** Both tables of a session. */
export const SESSION_TABLES = `session.sessions s
  JOIN session.session_settings t ON t.workspace_id = s.workspace_id AND t.session_id = s.session_id`;

/** Name of a status in the database. */
export function statusFromProto(status: SessionStatus): Status | undefined {
  return (Object.keys(STATUS_TO_PROTO) as Status[]).find((name) => STATUS_TO_PROTO[name] === status);
}

/** Status on the wire. */
export function statusToProto(status: Status): SessionStatus {
  return STATUS_TO_PROTO[status];
}

/** toSession makes a session's record of its row. */
export function toSession(row: Row): Session {
  return Session.fromPartial({
    id: row.session_id,
    workspaceId: row.workspace_id,
    status: statusToProto(row.status),
    title: row.title,
    metadata: readMetadata(row.metadata),
    agentJson: row.agent_json,
    agentId: row.agent_id,
    agentVersion: row.agent_version,
    environmentId: row.environment_id,
    vaultIds: row.vault_ids,
    headPosition: row.head,
    epoch: row.epoch,
    leaseOwner: row.owner ?? "",
    usage: row.usage ? ModelUsage.decode(row.usage) : ModelUsage.fromPartial({}),
    activeMs: row.active_ms,
    createTime: toTimestamp(row.created_at),
    updateTime: toTimestamp(row.updated_at),
    archiveTime: toOptionalTimestamp(row.archived_at),
    stopReason: row.stop_reason ? StopReason.decode(row.stop_reason) : undefined,
    budget: row.budget_cents === null ? undefined : { maxListCostCents: row.budget_cents },
    listCostMicrocents: row.list_cost ?? undefined,
    forkedFromSessionId: row.forked_from ?? "",
    forkedAtPosition: row.forked_at,
    repositories: row.repositories.map((bytes: Buffer) => Repository.decode(bytes)),
    ownVaultId: row.own_vault_id,
    environmentJson: row.environment_json,
  });
}

/** toLease makes a lease of a session's row; `alive` says whether the owner's heartbeat is. */
export function toLease(row: Row): Lease {
  return {
    sessionId: row.session_id,
    workspaceId: row.workspace_id,
    epoch: row.epoch,
    owner: row.owner ?? "",
    headPosition: row.head,
    isOwnerAlive: row.alive === true,
    status: statusToProto(row.status),
  };
}

/** Metadata is stored as JSON text in bytes. */
export function readMetadata(bytes: Buffer): Record<string, string> {
  return JSON.parse(bytes.toString("utf8"));
}

/** Metadata as it is stored: keys sorted, so that equal sets are equal bytes. */
export function writeMetadata(metadata: Readonly<Record<string, string>>): Buffer {
  const sorted = Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : 1));
  return Buffer.from(JSON.stringify(Object.fromEntries(sorted)));
}
