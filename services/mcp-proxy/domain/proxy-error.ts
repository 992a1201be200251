import { type Code, GanglionError } from "../../common/errors/ganglion-error.ts";

/** Code and fixed text of every reason of the domain "ganglion.mcp-proxy" that a call can end with. */
const REASONS = {
  INVALID_FIELD: ["INVALID_ARGUMENT", "a field is missing, malformed or out of bounds"],
  TOKEN_INVALID: ["UNAUTHENTICATED", "the session token is missing or not valid"],
  TOKEN_AUDIENCE: ["UNAUTHENTICATED", "the session token is for another door"],
  TOKEN_STALE_EPOCH: ["UNAUTHENTICATED", "a newer epoch made the session token worthless"],
  SESSION_ENDED: ["UNAUTHENTICATED", "the session has ended"],
  CALLER_MISMATCH: ["PERMISSION_DENIED", "the session token was issued to another certificate"],
  DEST_NOT_ALLOWED: ["PERMISSION_DENIED", "the session may not reach this destination"],
  METHOD_NOT_ALLOWED: ["PERMISSION_DENIED", "the route or method is not granted"],
  MODEL_NOT_ALLOWED: ["PERMISSION_DENIED", "the session may not call this model"],
  MODEL_FEATURE_NOT_ALLOWED: ["PERMISSION_DENIED", "a feature of the model's API that is not granted"],
  HEADER_FORBIDDEN: ["INVALID_ARGUMENT", "a header that the caller must not send"],
  CRED_MISSING: ["FAILED_PRECONDITION", "no credential is stored for this destination"],
  CRED_MALFORMED: ["FAILED_PRECONDITION", "the stored credential cannot be sent as a header"],
  VAULT_UNAVAILABLE: ["UNAVAILABLE", "Vault cannot be used now; nothing was sent"],
  AUDIT_UNAVAILABLE: ["UNAVAILABLE", "the audit record could not be stored; nothing was sent or changed"],
  UPSTREAM_UNREACHABLE: ["UNAVAILABLE", "the upstream cannot be reached; nothing was sent"],
  UPSTREAM_MALFORMED: ["UNAVAILABLE", "the upstream's answer is not valid"],
  UPSTREAM_UNAUTHORIZED: ["FAILED_PRECONDITION", "the upstream refused the stored credential"],
  UPSTREAM_REDIRECT: ["UNAVAILABLE", "the upstream redirected; redirects are not followed"],
  UPSTREAM_TIMEOUT: ["DEADLINE_EXCEEDED", "the upstream did not answer in time"],
  MESSAGE_TOO_LARGE: ["RESOURCE_EXHAUSTED", "request or answer is larger than the limit"],
  MCP_SERVER_NOT_FOUND: ["NOT_FOUND", "the session's agent has no such MCP server"],
  LEASE_NOT_CONFIRMED: ["FAILED_PRECONDITION", "the lease is not held by this caller in this epoch"],
  LOG_UNAVAILABLE: ["UNAVAILABLE", "the session service cannot be asked"],
  BINDING_NOT_FOUND: ["NOT_FOUND", "the session is not bound"],
  VAULT_NOT_FOUND: ["NOT_FOUND", "no such vault"],
  CREDENTIAL_NOT_FOUND: ["NOT_FOUND", "no such credential"],
  CREDENTIAL_EXISTS: ["ALREADY_EXISTS", "the vault has an active credential for this destination"],
  CREDENTIAL_ARCHIVED: ["FAILED_PRECONDITION", "the credential is archived; its secret is gone"],
  CREDENTIAL_LIMIT: ["FAILED_PRECONDITION", "a vault has at most 20 active credentials"],
  VAULT_IS_SYSTEM: ["FAILED_PRECONDITION", "the system vault of a workspace stays as it is"],
  CONFLICT: ["ABORTED", "the record was changed by somebody else at the same moment; try again"],
  VAULT_ARCHIVED: ["FAILED_PRECONDITION", "the vault is archived"],
  SEAL_INVALID: ["INVALID_ARGUMENT", "the sealed secret cannot be opened; fetch the sealing key again"],
  ID_REUSED: ["ALREADY_EXISTS", "the id was used before with another body"],
  CALL_NOT_FOUND: ["NOT_FOUND", "the call was never dispatched"],
  ROW_TAMPERED: ["DATA_LOSS", "a stored row was changed past the proxy; nothing was sent"],
  DRAINING: ["UNAVAILABLE", "the service is shutting down"],
  ROLE_NOT_ALLOWED: ["PERMISSION_DENIED", "the caller's role may not do this"],
  URL_NOT_CANONICAL: ["INVALID_ARGUMENT", "the URL is not in canonical form"],
  SCHEME_NOT_ALLOWED: [
    "PERMISSION_DENIED",
    "a credential may not travel over plain HTTP to this destination",
  ],
  WORKSPACE_NOT_FOUND: ["NOT_FOUND", "no such workspace"],
  REPO_NOT_ALLOWED: ["PERMISSION_DENIED", "the session may not use this repository"],
  REF_NOT_ALLOWED: ["PERMISSION_DENIED", "the session may not push to this ref"],
  GIT_REDIRECT: ["UNAVAILABLE", "the git server redirected; redirects are not followed"],
  REPO_NOT_FOUND: ["NOT_FOUND", "the git server knows no such repository"],
  RESPONSE_WITHHELD: ["PERMISSION_DENIED", "the answer could not be searched for the credential"],
  PIN_CHANGED: [
    "FAILED_PRECONDITION",
    "a tool's description or schema is not what was approved; nothing was called",
  ],
  PIN_NOT_FOUND: ["NOT_FOUND", "no such tool, or a digest that was neither pinned nor seen last"],
  CHECKPOINT_NOT_FOUND: ["NOT_FOUND", "no checkpoint covers that record yet"],
  CHECKPOINT_REFUSED: ["DATA_LOSS", "the stored audit log does not extend the last checkpoint"],
  RECEIPT_NOT_FOUND: ["NOT_FOUND", "the session's end is not recorded, or not covered by a checkpoint yet"],
  TOO_MANY_WATCHES: ["RESOURCE_EXHAUSTED", "the audit log is watched too often already"],
  DATABASE_UNAVAILABLE: ["UNAVAILABLE", "the proxy's database cannot be reached; nothing was sent"],
  ISSUER_MISMATCH: ["PERMISSION_DENIED", "the answer is not from the authorization server that was asked"],
  RESOURCE_MISMATCH: [
    "PERMISSION_DENIED",
    "the metadata speaks of another server than the one that was asked",
  ],
  CRED_REFRESH_FAILED: ["FAILED_PRECONDITION", "the stored authorization was not renewed; connect again"],
  OAUTH_NOT_SUPPORTED: ["FAILED_PRECONDITION", "the server does not offer what an authorization needs"],
  AUTHORIZATION_NOT_FOUND: ["NOT_FOUND", "no such authorization was begun, or it is over; begin again"],
  AUTHORIZATION_REFUSED: ["FAILED_PRECONDITION", "the authorization server refused"],
} as const satisfies Record<string, readonly [Code, string]>;

/** A reason that mcp-proxy answers with. */
export type Reason = keyof typeof REASONS;

/** Makes the error for a reason. `cause` stays in the process. */
export function proxyError(
  reason: Reason,
  more: { message?: string; metadata?: Record<string, string>; cause?: unknown } = {},
): GanglionError {
  const [code, text] = REASONS[reason];
  return new GanglionError({
    code,
    reason,
    message: more.message ?? text,
    metadata: more.metadata,
    ...(code === "UNAVAILABLE" ? { retryAfterMs: 500 } : {}),
    cause: more.cause,
  });
}

/** The reason of an error, or undefined when it is not one of ours. */
export function reasonOf(error: unknown): Reason | undefined {
  return GanglionError.is(error) && isReason(error.reason) ? error.reason : undefined;
}

/** True for a text that names one of our reasons. */
export function isReason(text: string): text is Reason {
  return Object.hasOwn(REASONS, text);
}
