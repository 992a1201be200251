import type {
  CreateCredentialRequest,
  Credential,
  OAuthRefresh,
  TokenEndpointAuth,
  UpdateCredentialRequest,
} from "../../gen/ganglion/vault/v1/vault_service.ts";
import { metadataChangeFromJson, metadataFromJson } from "./metadata-from-json.ts";
import { networkingFromJson, placesFromJson } from "./networking-from-json.ts";
import { asObject, invalid, optionalText, refuseUnknown, requiredText } from "./refuse.ts";
import { optionalSecret, requiredSecret } from "./secret-text.ts";
import { fromRfc3339 } from "./timestamps.ts";

/** The secrets of a request, as they came; they are sealed before anything else is done with them. */
export interface CredentialSecrets {
  secret?: string;
  refreshToken?: string;
  clientSecret?: string;
}

/** A request without the sealed fields, and what is to be sealed. */
export interface ReadCreate {
  request: Omit<CreateCredentialRequest, "secret" | "refreshToken" | "clientSecret">;
  auth: NonNullable<CreateCredentialRequest["auth"]>;
  secrets: CredentialSecrets;
}

/** As ReadCreate, for a change. */
export interface ReadUpdate {
  request: Omit<UpdateCredentialRequest, "secret" | "refreshToken" | "clientSecret">;
  secrets: CredentialSecrets;
}

type Json = Record<string, unknown>;
type Auth = ReadCreate["auth"];

const ENDPOINT_AUTHS = new Map<unknown, TokenEndpointAuth>([
  ["none", 1],
  ["client_secret_basic", 2],
  ["client_secret_post", 3],
]);
const TYPES = new Map<string, Auth["$case"]>([
  ["static_bearer", "staticBearer"],
  ["mcp_oauth", "mcpOauth"],
  ["environment_variable", "environmentVariable"],
]);

/** createCredentialFromJson reads the body of POST /v1/vaults/{vault}/credentials. */
export function createCredentialFromJson(vaultId: string, body: Json, requestId: string): ReadCreate {
  refuseUnknown(body, ["auth", "display_name", "metadata"]);
  if (body.auth === undefined) throw invalid("auth", "is required");
  const { auth, secrets } = readAuth(asObject(body.auth, "auth"));
  const displayName = nameOf(body.display_name) ?? "";
  const metadata = metadataFromJson(body.metadata);
  return { request: { requestId, vaultId, displayName, metadata, auth }, auth, secrets };
}

/** updateCredentialFromJson reads the body of POST /v1/vaults/{vault}/credentials/{credential}, which has that record. */
export function updateCredentialFromJson(record: Credential, body: Json): ReadUpdate {
  refuseUnknown(body, ["auth", "display_name", "metadata"]);
  const displayName = body.display_name === undefined ? undefined : (nameOf(body.display_name) ?? "");
  const isAuth = body.auth !== undefined && body.auth !== null;
  const { auth, secrets } = isAuth
    ? readAuthChange(record, asObject(body.auth, "auth"))
    : { auth: undefined, secrets: {} };
  const named = { credentialId: record.id, vaultId: record.vaultId, displayName };
  return { request: { ...named, ...metadataChangeFromJson(body.metadata), auth }, secrets };
}

function nameOf(value: unknown): string | undefined {
  const name = optionalText(value, "display_name");
  if (name === "") throw invalid("display_name", "must have 1 to 255 characters");
  return name;
}

function readAuth(json: Json): { auth: Auth; secrets: CredentialSecrets } {
  switch (json.type) {
    case "static_bearer": {
      refuseUnknown(json, ["type", "mcp_server_url", "token"], "auth.");
      const mcpServerUrl = requiredText(json.mcp_server_url, "auth.mcp_server_url");
      const secret = requiredSecret(json.token, "auth.token");
      return { auth: { $case: "staticBearer", value: { mcpServerUrl } }, secrets: { secret } };
    }
    case "mcp_oauth": {
      refuseUnknown(json, ["type", "mcp_server_url", "access_token", "expires_at", "refresh"], "auth.");
      const mcpServerUrl = requiredText(json.mcp_server_url, "auth.mcp_server_url");
      const secret = requiredSecret(json.access_token, "auth.access_token");
      const expiresAt = expiryOf(json.expires_at);
      if (json.refresh === undefined || json.refresh === null) {
        const value = { mcpServerUrl, expiresAt, refresh: undefined };
        return { auth: { $case: "mcpOauth", value }, secrets: { secret } };
      }
      const { refresh, ...more } = readRefresh(asObject(json.refresh, "auth.refresh"));
      const value = { mcpServerUrl, expiresAt, refresh };
      return { auth: { $case: "mcpOauth", value }, secrets: { secret, ...more } };
    }
    case "environment_variable": {
      const known = ["type", "secret_name", "secret_value", "networking", "injection_location"];
      refuseUnknown(json, known, "auth.");
      const secretName = requiredText(json.secret_name, "auth.secret_name");
      const secret = requiredSecret(json.secret_value, "auth.secret_value");
      if (json.networking === undefined) throw invalid("auth.networking", "is required");
      const networking = networkingFromJson(json.networking, "auth.networking");
      const injectionLocation = placesFromJson(json.injection_location, "auth.injection_location");
      const value = { secretName, networking, injectionLocation };
      return { auth: { $case: "environmentVariable", value }, secrets: { secret } };
    }
    default:
      throw invalid("auth.type", `must be one of ${[...TYPES.keys()].join(", ")}`);
  }
}

function readRefresh(json: Json): { refresh: OAuthRefresh } & CredentialSecrets {
  const known = ["client_id", "refresh_token", "token_endpoint", "token_endpoint_auth", "scope", "resource"];
  refuseUnknown(json, known, "auth.refresh.");
  const how = asObject(json.token_endpoint_auth, "auth.refresh.token_endpoint_auth");
  const tokenEndpointAuth = endpointAuthOf(how.type);
  const isPublic = how.type === "none";
  const field = "auth.refresh.token_endpoint_auth.";
  refuseUnknown(how, isPublic ? ["type"] : ["type", "client_secret"], field);
  const refresh = {
    clientId: requiredText(json.client_id, "auth.refresh.client_id"),
    tokenEndpoint: requiredText(json.token_endpoint, "auth.refresh.token_endpoint"),
    tokenEndpointAuth,
    scope: optionalText(json.scope, "auth.refresh.scope") ?? "",
    resource: optionalText(json.resource, "auth.refresh.resource") ?? "",
  };
  const refreshToken = requiredSecret(json.refresh_token, "auth.refresh.refresh_token");
  if (isPublic) return { refresh, refreshToken };
  return { refresh, refreshToken, clientSecret: requiredSecret(how.client_secret, `${field}client_secret`) };
}

function readAuthChange(
  record: Credential,
  json: Json,
): { auth: UpdateCredentialRequest["auth"]; secrets: CredentialSecrets } {
  if (TYPES.get(String(json.type)) !== record.auth?.$case) {
    throw invalid("auth.type", "must be the credential's own; it cannot be changed");
  }
  switch (json.type) {
    case "mcp_oauth": {
      refuseUnknown(json, ["type", "access_token", "expires_at", "refresh"], "auth.");
      const { scope, ...more } = readRefreshChange(json.refresh);
      const expiresAt = expiryOf(json.expires_at);
      const secrets = { secret: optionalSecret(json.access_token, "auth.access_token"), ...more };
      return { auth: { $case: "mcpOauth", value: { expiresAt, scope } }, secrets };
    }
    case "environment_variable": {
      refuseUnknown(json, ["type", "secret_value", "networking", "injection_location"], "auth.");
      const isScope = json.networking !== undefined && json.networking !== null;
      const value = {
        networking: isScope ? networkingFromJson(json.networking, "auth.networking") : undefined,
        injectionLocation: placesFromJson(json.injection_location, "auth.injection_location"),
      };
      const secrets = { secret: optionalSecret(json.secret_value, "auth.secret_value") };
      return { auth: { $case: "environmentVariable", value }, secrets };
    }
    default:
      refuseUnknown(json, ["type", "token"], "auth.");
      return { auth: undefined, secrets: { secret: optionalSecret(json.token, "auth.token") } };
  }
}

function readRefreshChange(value: unknown): CredentialSecrets & { scope?: string } {
  if (value === undefined || value === null) return {};
  const json = asObject(value, "auth.refresh");
  refuseUnknown(json, ["refresh_token", "scope", "token_endpoint_auth"], "auth.refresh.");
  const change: CredentialSecrets & { scope?: string } = {
    scope: optionalText(json.scope, "auth.refresh.scope"),
    refreshToken: optionalSecret(json.refresh_token, "auth.refresh.refresh_token"),
  };
  if (json.token_endpoint_auth === undefined || json.token_endpoint_auth === null) return change;
  const field = "auth.refresh.token_endpoint_auth";
  const how = asObject(json.token_endpoint_auth, field);
  refuseUnknown(how, ["type", "client_secret"], `${field}.`);
  // The stored type stays, whichever of the two is named: only the secret can change.
  if (endpointAuthOf(how.type) === ENDPOINT_AUTHS.get("none")) {
    throw invalid(`${field}.type`, "must be client_secret_basic or client_secret_post");
  }
  return { ...change, clientSecret: optionalSecret(how.client_secret, `${field}.client_secret`) };
}

function endpointAuthOf(type: unknown): TokenEndpointAuth {
  const found = ENDPOINT_AUTHS.get(type);
  if (found !== undefined) return found;
  const names = [...ENDPOINT_AUTHS.keys()].join(", ");
  throw invalid("auth.refresh.token_endpoint_auth.type", `must be one of ${names}`);
}

function expiryOf(value: unknown) {
  const text = optionalText(value, "auth.expires_at");
  return text === undefined ? undefined : fromRfc3339(text, "auth.expires_at");
}
