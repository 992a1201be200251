/** What went wrong at Vault, as far as anybody may know. */
export type VaultFailureKind =
  | "unreachable"
  | "timeout"
  | "redirect"
  | "malformed"
  | "sealed"
  | "standby"
  | "denied"
  | "not_found"
  | "misrouted"
  | "bad_request"
  | "server";

/**
 * The only error that leaves this room. It is made from nothing: the errors of the HTTP client and of node-vault carry
 * the request with the Vault token in it (M13, case A117), so neither they nor Vault's text are kept.
 */
export class VaultFailure extends Error {
  override readonly name = "VaultFailure";
  readonly kind: VaultFailureKind;
  /** HTTP status; 0 when there was none. */
  readonly status: number;

  constructor(kind: VaultFailureKind, status = 0) {
    super(`vault: ${kind}${status ? ` (${status})` : ""}`);
    this.kind = kind;
    this.status = status;
  }
}

/** True for a failure of one of these kinds, false for whatever else was thrown. */
export function isVaultFailure(error: unknown, ...kinds: VaultFailureKind[]): boolean {
  return error instanceof VaultFailure && kinds.includes(error.kind);
}

/** The kind that a status of Vault's HTTP API stands for. */
export function kindOfStatus(status: number, hasWarnings: boolean): VaultFailureKind {
  if (status >= 300 && status < 400) return "redirect";
  if (status === 403) return "denied";
  // A KV version 2 path without data/ answers 404 with a warning that node-vault's message loses (M16).
  if (status === 404) return hasWarnings ? "misrouted" : "not_found";
  if (status === 429 || status === 472 || status === 473) return "standby";
  if (status === 503) return "sealed";
  if (status >= 500) return "server";
  return "bad_request";
}
