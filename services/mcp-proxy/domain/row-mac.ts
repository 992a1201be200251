import { createHmac, timingSafeEqual } from "node:crypto";
import { sortedJson } from "../../common/json/sorted-json.ts";
import type { CredentialConfig } from "./credential-config.ts";
import type { GitGrant, Networking } from "./hand-rules.ts";

/** The part of a binding that its MAC covers. */
export interface BindingFields {
  sessionId: string;
  workspaceId: string;
  vaultIds: readonly string[];
  mcpServers: readonly { name: string; url: string }[];
  models: readonly string[];
  /** What hands may reach; null = nothing. */
  networking: Networking | null;
  gitRepositories: readonly GitGrant[];
}

/** The part of a token that its MAC covers. */
export interface TokenFields {
  tokenHash: Buffer;
  tokenId: string;
  sessionId: string;
  epoch: bigint;
  audience: string;
  spiffeId: string;
  /** Empty for every audience but "hand". */
  handId: string;
}

/** The part of a credential's record that its MAC covers. */
export interface CredentialFields {
  credentialId: string;
  vaultId: string;
  kind: string;
  url: string;
  secretName: string;
  config: CredentialConfig;
}

/** The part of a vault's record that its MAC covers. */
export interface VaultFields {
  vaultId: string;
  workspaceId: string;
  isSystem: boolean;
  isDecoy: boolean;
}

/** The part of a tool's pin that its MAC covers. */
export interface ToolPinFields {
  workspaceId: string;
  serverUrl: string;
  toolName: string;
  sha256: Buffer;
}

/** MACs of the rows that decide which credential goes where, with a key that the database does not have. */
export interface RowMac {
  binding(row: BindingFields): Buffer;
  token(row: TokenFields): Buffer;
  credential(row: CredentialFields): Buffer;
  vault(row: VaultFields): Buffer;
  toolPin(row: ToolPinFields): Buffer;
}

/** Makes the MACs for a key of 32 bytes. Each kind of row has its own label, so one cannot pass for another. */
export function createRowMac(key: Buffer): RowMac {
  if (key.length !== 32) throw new Error("the MAC key must have 32 bytes");
  // A JSON array of strings is unambiguous: no two different rows give the same text.
  const mac = (...fields: unknown[]) => createHmac("sha256", key).update(JSON.stringify(fields)).digest();
  return {
    // Each has a second label for what came to be later, so that rows of before keep their MACs.
    binding: (row) => {
      const servers = row.mcpServers.map((server) => [server.name, server.url]);
      const { sessionId, workspaceId, vaultIds, models, networking, gitRepositories } = row;
      const fields = [sessionId, workspaceId, vaultIds, servers, models];
      if (networking === null && gitRepositories.length === 0) return mac("binding/v1", ...fields);
      return mac("binding/v2", ...fields, networkingFields(networking), gitRepositories.map(gitFields));
    },
    token: (row) => {
      const { tokenHash, tokenId, sessionId, epoch, audience, spiffeId, handId } = row;
      const fields = [tokenHash.toString("hex"), tokenId, sessionId, String(epoch), audience, spiffeId];
      return handId === "" ? mac("token/v1", ...fields) : mac("hand_token/v1", ...fields, handId);
    },
    credential: ({ credentialId, vaultId, kind, url, secretName, config }) => {
      const fields = [credentialId, vaultId, kind, url];
      // Rows from before there were settings; one that lost or gained some has another MAC.
      if (secretName === "" && Object.keys(config).length === 0) return mac("credential/v1", ...fields);
      return mac("credential/v2", ...fields, secretName, sortedJson(config));
    },
    toolPin: (row) =>
      mac("tool_pin/v1", row.workspaceId, row.serverUrl, row.toolName, row.sha256.toString("hex")),
    vault: ({ vaultId, workspaceId, isSystem, isDecoy }) => {
      const fields = [vaultId, workspaceId, isSystem];
      return isDecoy ? mac("vault/v2", ...fields, isDecoy) : mac("vault/v1", ...fields);
    },
  };
}

function networkingFields(networking: Networking | null): unknown {
  if (networking === null) return null;
  const { type, allowedHosts, allowMcpServers, allowPackageManagers } = networking;
  return [type, allowedHosts, allowMcpServers, allowPackageManagers];
}

function gitFields({ url, allowFetch, allowPush, refs }: GitGrant): unknown {
  return [url, allowFetch, allowPush, refs];
}

/** Compares in constant time; a missing or short MAC is wrong. */
export function isMac(stored: Buffer | null | undefined, expected: Buffer): boolean {
  return Buffer.isBuffer(stored) && stored.length === expected.length && timingSafeEqual(stored, expected);
}
