import { createHmac, timingSafeEqual } from "node:crypto";

/** The part of a binding that its MAC covers. */
export interface BindingFields {
  sessionId: string;
  workspaceId: string;
  vaultIds: readonly string[];
  mcpServers: readonly { name: string; url: string }[];
  models: readonly string[];
}

/** The part of a token that its MAC covers. */
export interface TokenFields {
  tokenHash: Buffer;
  tokenId: string;
  sessionId: string;
  epoch: bigint;
  audience: string;
  spiffeId: string;
}

/** The part of a credential's record that its MAC covers. */
export interface CredentialFields {
  credentialId: string;
  vaultId: string;
  kind: string;
  url: string;
}

/** The part of a vault's record that its MAC covers. */
export interface VaultFields {
  vaultId: string;
  workspaceId: string;
  isSystem: boolean;
}

/** MACs of the rows that decide which credential goes where, with a key that the database does not have. */
export interface RowMac {
  binding(row: BindingFields): Buffer;
  token(row: TokenFields): Buffer;
  credential(row: CredentialFields): Buffer;
  vault(row: VaultFields): Buffer;
}

/** Makes the MACs for a key of 32 bytes. Each kind of row has its own label, so one cannot pass for another. */
export function createRowMac(key: Buffer): RowMac {
  if (key.length !== 32) throw new Error("the MAC key must have 32 bytes");
  // A JSON array of strings is unambiguous: no two different rows give the same text.
  const mac = (...fields: unknown[]) => createHmac("sha256", key).update(JSON.stringify(fields)).digest();
  return {
    binding: (row) =>
      mac(
        "binding/v1",
        row.sessionId,
        row.workspaceId,
        row.vaultIds,
        row.mcpServers.map((server) => [server.name, server.url]),
        row.models,
      ),
    token: (row) =>
      mac(
        "token/v1",
        row.tokenHash.toString("hex"),
        row.tokenId,
        row.sessionId,
        String(row.epoch),
        row.audience,
        row.spiffeId,
      ),
    credential: (row) => mac("credential/v1", row.credentialId, row.vaultId, row.kind, row.url),
    vault: (row) => mac("vault/v1", row.vaultId, row.workspaceId, row.isSystem),
  };
}

/** Compares in constant time; a missing or short MAC is wrong. */
export function isMac(stored: Buffer | null | undefined, expected: Buffer): boolean {
  return Buffer.isBuffer(stored) && stored.length === expected.length && timingSafeEqual(stored, expected);
}
