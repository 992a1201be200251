import { Role } from "../../gen/ganglion/types/v1/access.ts";
import type {
  Credential,
  CredentialNetworking as NetworkingMessage,
  Vault,
} from "../../gen/ganglion/vault/v1/vault_service.ts";
import { TokenEndpointAuth } from "../../gen/ganglion/vault/v1/vault_service.ts";
import type { Timestamp } from "../../gen/google/protobuf/timestamp.ts";
import type { CredentialNetworking, RefreshConfig } from "../domain/credential-config.ts";
import type { CredentialRecord, VaultRow } from "../domain/records.ts";
import { AUTH_NAMES } from "./read-config.ts";

/** A point in time as a message; absent stays absent. */
export function toTimestamp(at: Date | null): Timestamp | undefined {
  if (!at) return undefined;
  const ms = at.getTime();
  return { seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1_000_000 };
}

/** A vault's record as a message; that it is a decoy, operators alone are told. */
export function toVault(row: VaultRow, role: Role): Vault {
  return {
    id: row.vaultId,
    workspaceId: row.workspaceId,
    displayName: row.displayName,
    metadata: row.metadata,
    isSystem: row.isSystem,
    isDecoy: row.isDecoy && role === Role.ROLE_OPERATOR,
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
    auth: toAuth(row),
    createTime: toTimestamp(row.createdAt),
    updateTime: toTimestamp(row.updatedAt),
    archiveTime: toTimestamp(row.archivedAt),
  };
}

function toAuth({ kind, url, secretName, config }: CredentialRecord): Credential["auth"] {
  switch (kind) {
    case "static_bearer":
      return { $case: "staticBearer", value: { mcpServerUrl: url } };
    case "mcp_oauth": {
      const expiresAt = config.expires_at === undefined ? null : new Date(config.expires_at);
      const refresh = config.refresh && toRefresh(config.refresh);
      return { $case: "mcpOauth", value: { mcpServerUrl: url, expiresAt: toTimestamp(expiresAt), refresh } };
    }
    case "environment_variable": {
      const networking = toNetworking(config.networking);
      const value = { secretName, networking, injectionLocation: config.injection_location };
      return { $case: "environmentVariable", value };
    }
    case "model_api_key":
      return { $case: "modelApiKey", value: { baseUrl: url } };
  }
}

function toRefresh(refresh: RefreshConfig) {
  const [auth] = [...AUTH_NAMES].find(([, name]) => name === refresh.token_endpoint_auth) ?? [
    TokenEndpointAuth.TOKEN_ENDPOINT_AUTH_UNSPECIFIED,
  ];
  return {
    clientId: refresh.client_id,
    tokenEndpoint: refresh.token_endpoint,
    tokenEndpointAuth: auth,
    scope: refresh.scope ?? "",
    resource: refresh.resource ?? "",
  };
}

function toNetworking(networking: CredentialNetworking | undefined): NetworkingMessage | undefined {
  if (!networking) return undefined;
  if (networking.type === "unrestricted") return { scope: { $case: "unrestricted", value: {} } };
  return { scope: { $case: "limited", value: { allowedHosts: networking.allowed_hosts } } };
}
