import { Violations } from "../../common/errors/violations.ts";
import { sortedJson } from "../../common/json/sorted-json.ts";
import type {
  CreateCredentialRequest,
  McpOAuth,
  SealedSecret,
  UpdateCredentialRequest,
} from "../../gen/ganglion/vault/v1/vault_service.ts";
import { parseDestination } from "../domain/canonical-url.ts";
import type { CredentialChange } from "../domain/change-credential.ts";
import type { CredentialConfig, CredentialKind } from "../domain/credential-config.ts";
import { isSecretName } from "../domain/credential-rules.ts";
import type { CredentialRequest } from "../domain/manage-credentials.ts";
import type { Sealed } from "../domain/records.ts";
import { readExpiry, readInjection, readNetworking, readRefresh, readScope, readUrl } from "./read-config.ts";
import {
  checkCredentialId,
  checkMetadata,
  checkRequestId,
  checkText,
  checkVaultId,
  digestOf,
  readRecordChange,
} from "./read-requests.ts";

const MAX_CIPHERTEXT_BYTES = 65_536 + 16;

/** What a credential is for, as a request says it. */
interface Meant {
  kind: CredentialKind;
  url: string;
  secretName: string;
  statedKey: string;
  config: CredentialConfig;
}

/** Checks a request for a new credential and brings its destination into normal form. */
export function readCreateCredential(
  req: CreateCredentialRequest,
  modelUrls: readonly string[],
): CredentialRequest {
  const found = new Violations();
  checkRequestId(found, req.requestId);
  checkVaultId(found, req.vaultId);
  checkText(found, "display_name", req.displayName, { required: false, maxLength: 255 });
  checkMetadata(found, req.metadata);
  const meant = readAuth(found, req.auth, modelUrls);
  found.present("secret", req.secret);
  const secret = readSealed(found, "secret", req.secret);
  const refreshToken = readSealed(found, "refresh_token", req.refreshToken);
  const clientSecret = readSealed(found, "client_secret", req.clientSecret);
  const { refresh } = meant.config;
  wantOnly(found, "refresh_token", refreshToken, refresh !== undefined);
  wantOnly(
    found,
    "client_secret",
    clientSecret,
    refresh !== undefined && refresh.token_endpoint_auth !== "none",
  );
  found.throwIfAny();
  const { vaultId, displayName, metadata } = req;
  const sealed = [secret, refreshToken, clientSecret].flatMap((one) =>
    one ? [one.keyId, one.enc, one.ciphertext] : [""],
  );
  const said = sortedJson([meant.kind, meant.url, meant.secretName, meant.config, displayName, metadata]);
  return {
    vaultId,
    displayName,
    metadata,
    ...meant,
    secret: secret as Sealed,
    refreshToken,
    clientSecret,
    requestId: req.requestId || null,
    requestDigest: digestOf(said, ...sealed),
  };
}

/** Checks a request to change a credential. What its kind lets change is for the domain to say. */
export function readUpdateCredential(req: UpdateCredentialRequest): CredentialChange {
  const found = new Violations();
  checkVaultId(found, req.vaultId);
  checkCredentialId(found, req.credentialId);
  const change: CredentialChange = {
    vaultId: req.vaultId,
    credentialId: req.credentialId,
    ...readRecordChange(found, req, { isNameRequired: false }),
    secret: readSealed(found, "secret", req.secret),
    refreshToken: readSealed(found, "refresh_token", req.refreshToken),
    clientSecret: readSealed(found, "client_secret", req.clientSecret),
  };
  if (req.auth?.$case === "mcpOauth") {
    const { expiresAt, scope } = req.auth.value;
    if (scope !== undefined) readScope(found, "mcp_oauth.scope", scope);
    change.auth = {
      kind: "mcp_oauth",
      expiresAt: readExpiry(found, "mcp_oauth.expires_at", expiresAt),
      scope,
    };
  }
  if (req.auth?.$case === "environmentVariable") {
    const { networking, injectionLocation } = req.auth.value;
    change.auth = {
      kind: "environment_variable",
      networking: networking && readNetworking(found, "environment_variable.networking", networking),
      injection: injectionLocation && { header: injectionLocation.header, body: injectionLocation.body },
    };
  }
  found.throwIfAny();
  return change;
}

/** Checks the form of a sealed secret; absent stays absent. */
export function readSealed(
  found: Violations,
  field: string,
  secret: SealedSecret | undefined,
): Sealed | undefined {
  if (!secret) return undefined;
  found.string(`${field}.key_id`, secret.keyId, { required: true, maxLength: 64 });
  found.check(secret.enc.length === 32, `${field}.enc`, "must have 32 bytes");
  found.bytes(`${field}.ciphertext`, secret.ciphertext, { required: true, maxBytes: MAX_CIPHERTEXT_BYTES });
  return secret;
}

function wantOnly(found: Violations, field: string, value: unknown, isWanted: boolean): void {
  if (isWanted) found.present(field, value);
  else found.check(value === undefined, field, "does not go with these settings");
}

function readAuth(
  found: Violations,
  auth: CreateCredentialRequest["auth"],
  modelUrls: readonly string[],
): Meant {
  if (auth?.$case === "staticBearer") {
    return readServer(found, "static_bearer", auth.value.mcpServerUrl, {});
  }
  if (auth?.$case === "mcpOauth") {
    return readServer(found, "mcp_oauth", auth.value.mcpServerUrl, readOAuth(found, auth.value));
  }
  if (auth?.$case === "environmentVariable") {
    const { secretName, networking, injectionLocation } = auth.value;
    found.string("environment_variable.secret_name", secretName, { required: true });
    const means = "must be letters, digits and _, at most 255, and no name that changes how programs run";
    const isFit = secretName === "" || isSecretName(secretName);
    found.check(isFit, "environment_variable.secret_name", means);
    const config = {
      networking: readNetworking(found, "environment_variable.networking", networking),
      injection_location: readInjection(found, "environment_variable.injection_location", injectionLocation),
    };
    return { kind: "environment_variable", url: "", secretName, statedKey: secretName, config };
  }
  if (auth?.$case === "modelApiKey") {
    const text = auth.value.baseUrl;
    found.string("model_api_key.base_url", text, { required: true, maxLength: 2048 });
    const url = parseDestination(text)?.url ?? "";
    const isKnown = text === "" || modelUrls.includes(url);
    found.check(isKnown, "model_api_key.base_url", `must be one of ${modelUrls.join(", ")}`);
    return { kind: "model_api_key", url, secretName: "", statedKey: text, config: {} };
  }
  found.add("auth", "is required");
  return { kind: "static_bearer", url: "", secretName: "", statedKey: "", config: {} };
}

function readServer(
  found: Violations,
  kind: "static_bearer" | "mcp_oauth",
  text: string,
  config: CredentialConfig,
): Meant {
  const url = readUrl(found, `${kind}.mcp_server_url`, text, { required: true });
  return { kind, url, secretName: "", statedKey: text, config };
}

function readOAuth(found: Violations, { expiresAt, refresh }: McpOAuth): CredentialConfig {
  const at = readExpiry(found, "mcp_oauth.expires_at", expiresAt);
  const how = refresh && readRefresh(found, "mcp_oauth.refresh", refresh);
  return { ...(at === undefined ? {} : { expires_at: at }), ...(how === undefined ? {} : { refresh: how }) };
}
