import type { CredentialConfig, CredentialKind } from "./credential-config.ts";
import type { GitGrant, Networking } from "./hand-rules.ts";
import type { Reason } from "./proxy-error.ts";
import { isMac, type RowMac } from "./row-mac.ts";
import type { ToolPin } from "./tool-pins.ts";

/** A credential's record as the policy needs it. */
export interface CredentialRow {
  credentialId: string;
  vaultId: string;
  kind: CredentialKind;
  /** Where it goes, in normal form; empty for environment variables. */
  url: string;
  /** Name of the environment variable; empty for other kinds. */
  secretName: string;
  config: CredentialConfig;
  version: bigint;
  mac: Buffer;
}

/** Everything stored about a session token, read in one statement. */
export interface AccessRow {
  tokenHash: Buffer;
  tokenId: string;
  sessionId: string;
  epoch: bigint;
  audience: string;
  spiffeId: string;
  handId: string;
  tokenMac: Buffer;
  workspaceId: string;
  vaultIds: string[];
  mcpServers: { name: string; url: string }[];
  models: string[];
  networking: Networking | null;
  gitRepositories: GitGrant[];
  bindingMac: Buffer;
  /** null when there is no fence row, which is as bad as an ended one. */
  lowestEpoch: bigint | null;
  ended: boolean | null;
  /** Active credentials that fit what was asked for, in the order of the binding's vaults. */
  credentials: CredentialRow[];
  /** Pins of the tools that were asked for. */
  toolPins: ToolPin[];
}

/** Who asks, and for which door. */
export interface AccessQuestion {
  audience: string;
  spiffeId: string;
}

/**
 * Says why a token may not be used, or nothing. MACs first: nothing in a row is believed before. Every check names
 * what it wants; a missing value passes none of them (case A013).
 */
export function judgeAccess(row: AccessRow, asked: AccessQuestion, mac: RowMac): Reason | undefined {
  if (!isMac(row.tokenMac, mac.token(row)) || !isMac(row.bindingMac, mac.binding(row))) return "ROW_TAMPERED";
  if (row.spiffeId !== asked.spiffeId) return "CALLER_MISMATCH";
  if (row.audience !== asked.audience) return "TOKEN_AUDIENCE";
  if (row.lowestEpoch === null || row.ended !== false) return "SESSION_ENDED";
  // A hand outlives the brains that use it (DESIGN §4.3): its token is bound to the session, not to an epoch.
  if (row.audience !== "hand" && row.epoch < row.lowestEpoch) return "TOKEN_STALE_EPOCH";
  return undefined;
}
