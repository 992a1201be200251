import { Violations } from "../../common/errors/violations.ts";
import type { CreateCredentialRequest, SealedSecret } from "../../gen/ganglion/vault/v1/vault_service.ts";
import { parseDestination } from "../domain/canonical-url.ts";
import type { CredentialRequest } from "../domain/manage-credentials.ts";
import type { Sealed } from "../domain/records.ts";
import { checkMetadata, checkRequestId, checkText, checkVaultId, digestOf } from "./read-requests.ts";

const MAX_CIPHERTEXT_BYTES = 65_536 + 16;

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
  const { kind, url, statedUrl } = readAuth(found, req.auth, modelUrls);
  const secret = readSealed(found, req.secret);
  found.throwIfAny();
  const { vaultId, displayName, metadata } = req;
  const pairs = JSON.stringify(Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : 1)));
  const requestDigest = digestOf(kind, url, displayName, pairs, secret.keyId, secret.enc, secret.ciphertext);
  return {
    vaultId,
    displayName,
    metadata,
    kind,
    url,
    statedUrl,
    secret,
    requestId: req.requestId || null,
    requestDigest,
  };
}

/** Checks the form of a sealed secret. */
export function readSealed(found: Violations, secret: SealedSecret | undefined): Sealed {
  found.present("secret", secret);
  if (!secret) return { keyId: "", enc: Buffer.alloc(0), ciphertext: Buffer.alloc(0) };
  found.string("secret.key_id", secret.keyId, { required: true, maxLength: 64 });
  found.check(secret.enc.length === 32, "secret.enc", "must have 32 bytes");
  found.bytes("secret.ciphertext", secret.ciphertext, { required: true, maxBytes: MAX_CIPHERTEXT_BYTES });
  return secret;
}

function readAuth(
  found: Violations,
  auth: CreateCredentialRequest["auth"],
  modelUrls: readonly string[],
): Pick<CredentialRequest, "kind" | "url" | "statedUrl"> {
  if (auth?.$case === "staticBearer") {
    const text = auth.value.mcpServerUrl;
    found.string("static_bearer.mcp_server_url", text, { required: true, maxLength: 2048 });
    const url = parseDestination(text)?.url;
    const means = "must be an http or https URL without user name, fragment, spaces and backslashes";
    found.check(text === "" || url !== undefined, "static_bearer.mcp_server_url", means);
    return { kind: "static_bearer", url: url ?? "", statedUrl: text };
  }
  if (auth?.$case === "modelApiKey") {
    const text = auth.value.baseUrl;
    found.string("model_api_key.base_url", text, { required: true, maxLength: 2048 });
    const url = parseDestination(text)?.url ?? "";
    const isKnown = text === "" || modelUrls.includes(url);
    found.check(isKnown, "model_api_key.base_url", `must be one of ${modelUrls.join(", ")}`);
    return { kind: "model_api_key", url, statedUrl: text };
  }
  found.add("auth", "is required");
  return { kind: "static_bearer", url: "", statedUrl: "" };
}
