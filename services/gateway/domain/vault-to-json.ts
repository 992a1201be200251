import type {
  Credential,
  CredentialNetworking,
  CredentialValidation,
  OAuthRefresh,
  UpstreamResponse,
  Vault,
} from "../../gen/ganglion/vault/v1/vault_service.ts";
import { toRfc3339 } from "./timestamps.ts";

type Json = Record<string, unknown>;

/** By the numbers of the message's enums; 0 and what is not known to be good stand for the harmless word. */
const ENDPOINT_AUTHS = ["none", "none", "client_secret_basic", "client_secret_post"];
const VERDICTS = ["unknown", "valid", "invalid", "unknown"];
const REFRESHES = ["connect_error", "succeeded", "failed", "connect_error", "no_refresh_token"];

/** vaultToJson writes a vault as the REST API shows it. */
export function vaultToJson(vault: Vault): Json {
  return {
    id: vault.id,
    type: "vault",
    display_name: vault.displayName,
    metadata: vault.metadata,
    created_at: toRfc3339(vault.createTime),
    updated_at: toRfc3339(vault.updateTime),
    archived_at: toRfc3339(vault.archiveTime),
  };
}

/** credentialToJson writes a credential as the REST API shows it: the record, which has no secret. */
export function credentialToJson(credential: Credential): Json {
  return {
    id: credential.id,
    type: "vault_credential",
    vault_id: credential.vaultId,
    display_name: credential.displayName === "" ? null : credential.displayName,
    metadata: credential.metadata,
    auth: authToJson(credential.auth),
    created_at: toRfc3339(credential.createTime),
    updated_at: toRfc3339(credential.updateTime),
    archived_at: toRfc3339(credential.archiveTime),
  };
}

/** validationToJson writes what a validation came to as the REST API shows it. */
export function validationToJson(found: CredentialValidation): Json {
  const { mcpProbe: probe, refresh } = found;
  return {
    type: "vault_credential_validation",
    credential_id: found.credentialId,
    vault_id: found.vaultId,
    validated_at: toRfc3339(found.validateTime),
    has_refresh_token: found.hasRefreshToken,
    status: VERDICTS[found.verdict] ?? "unknown",
    mcp_probe: probe ? { method: probe.method, http_response: responseToJson(probe.httpResponse) } : null,
    refresh: refresh
      ? {
          status: REFRESHES[refresh.status] ?? "connect_error",
          http_response: responseToJson(refresh.httpResponse),
        }
      : null,
  };
}

function authToJson(auth: Credential["auth"]): Json {
  switch (auth?.$case) {
    case "staticBearer":
      return { type: "static_bearer", mcp_server_url: auth.value.mcpServerUrl };
    case "mcpOauth":
      return {
        type: "mcp_oauth",
        mcp_server_url: auth.value.mcpServerUrl,
        expires_at: toRfc3339(auth.value.expiresAt),
        refresh: auth.value.refresh ? refreshToJson(auth.value.refresh) : null,
      };
    case "environmentVariable": {
      const { secretName, networking, injectionLocation: places } = auth.value;
      return {
        type: "environment_variable",
        secret_name: secretName,
        networking: networkingToJson(networking),
        injection_location: { header: places?.header ?? false, body: places?.body ?? false },
      };
    }
    default:
      // Operators' kinds are in the system vault, which this API does not show.
      return { type: "unknown" };
  }
}

function refreshToJson(refresh: OAuthRefresh): Json {
  return {
    client_id: refresh.clientId,
    token_endpoint: refresh.tokenEndpoint,
    token_endpoint_auth: { type: ENDPOINT_AUTHS[refresh.tokenEndpointAuth] ?? "none" },
    scope: refresh.scope === "" ? null : refresh.scope,
    resource: refresh.resource === "" ? null : refresh.resource,
  };
}

function networkingToJson(networking: CredentialNetworking | undefined): Json {
  const { scope } = networking ?? {};
  if (scope?.$case === "unrestricted") return { type: "unrestricted" };
  return { type: "limited", allowed_hosts: scope?.value.allowedHosts ?? [] };
}

function responseToJson(response: UpstreamResponse | undefined): Json | null {
  if (!response) return null;
  return {
    status_code: response.statusCode,
    content_type: response.contentType,
    body: response.body,
    body_truncated: response.bodyTruncated,
  };
}
