import type { Credential, Vault } from "../../gen/ganglion/vault/v1/vault_service.ts";
import type { Timestamp } from "../../gen/google/protobuf/timestamp.ts";
import type { CredentialRecord, VaultRow } from "../domain/records.ts";

/** A point in time as a message; absent stays absent. */
export function toTimestamp(at: Date | null): Timestamp | undefined {
  if (!at) return undefined;
  const ms = at.getTime();
  return { seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1_000_000 };
}

/** A vault's record as a message. */
export function toVault(row: VaultRow): Vault {
  return {
    id: row.vaultId,
    workspaceId: row.workspaceId,
    displayName: row.displayName,
    metadata: row.metadata,
    isSystem: row.isSystem,
    createTime: toTimestamp(row.createdAt),
    updateTime: toTimestamp(row.updatedAt),
    archiveTime: toTimestamp(row.archivedAt),
  };
}

/** A credential's record as a message; there is no secret in it to leave out. */
export function toCredential(row: CredentialRecord): Credential {
  return {
    id: row.credentialId,
    vaultId: row.vaultId,
    displayName: row.displayName,
    metadata: row.metadata,
    auth:
      row.kind === "static_bearer"
        ? { $case: "staticBearer", value: { mcpServerUrl: row.url } }
        : { $case: "modelApiKey", value: { baseUrl: row.url } },
    createTime: toTimestamp(row.createdAt),
    updateTime: toTimestamp(row.updatedAt),
    archiveTime: toTimestamp(row.archivedAt),
  };
}
