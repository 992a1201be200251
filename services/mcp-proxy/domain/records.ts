import type { CredentialRow } from "./access.ts";
import type { BindingFields, TokenFields } from "./row-mac.ts";

/** A vault's record. */
export interface VaultRow {
  vaultId: string;
  workspaceId: string;
  displayName: string;
  metadata: Record<string, string>;
  isSystem: boolean;
  requestDigest: Buffer | null;
  mac: Buffer;
  createdAt: Date;
  updatedAt: Date;
  archivedAt: Date | null;
}

/** A vault to be recorded. */
export interface NewVault {
  vaultId: string;
  workspaceId: string;
  displayName: string;
  metadata: Record<string, string>;
  isSystem: boolean;
  requestId: string | null;
  requestDigest: Buffer | null;
  mac: Buffer;
}

/** Records of vaults. */
export interface VaultStore {
  /** Stores a vault, or finds the one that the same request (or workspace, for a system vault) made before. */
  insertOrFind(vault: NewVault): Promise<VaultRow>;
  find(vaultId: string): Promise<VaultRow | undefined>;
  findMany(vaultIds: readonly string[]): Promise<VaultRow[]>;
  /** Newest first, after the id `before`. */
  list(options: {
    workspaceId: string;
    before: string | null;
    limit: number;
    withArchived: boolean;
    withSystem: boolean;
  }): Promise<VaultRow[]>;
}

/** A credential's record, all of it. */
export interface CredentialRecord extends CredentialRow {
  displayName: string;
  metadata: Record<string, string>;
  isSecretRemoved: boolean;
  requestDigest: Buffer | null;
  createdAt: Date;
  updatedAt: Date;
  archivedAt: Date | null;
}

/** A credential to be recorded; it counts from the moment its secret is stored. */
export interface NewCredential {
  credentialId: string;
  vaultId: string;
  displayName: string;
  metadata: Record<string, string>;
  kind: CredentialRow["kind"];
  url: string;
  requestId: string | null;
  requestDigest: Buffer | null;
  mac: Buffer;
}

/** Records of credentials; secrets are Vault's. */
export interface CredentialStore {
  /** Stores the record with version 0, or finds the one that the same request made before. */
  insertOrFind(credential: NewCredential): Promise<CredentialRecord>;
  find(vaultId: string, credentialId: string): Promise<CredentialRecord | undefined>;
  isDestinationTaken(vaultId: string, kind: string, url: string): Promise<boolean>;
  /** The secret is stored in that version; undefined: archived or gone, "taken": another has the destination. */
  setVersion(
    vaultId: string,
    credentialId: string,
    version: bigint,
  ): Promise<CredentialRecord | "taken" | undefined>;
  /** Drops a record whose secret was never stored. */
  dropUnwritten(vaultId: string, credentialId: string): Promise<void>;
  archive(vaultId: string, credentialId: string): Promise<CredentialRecord | undefined>;
  markSecretRemoved(vaultId: string, credentialId: string): Promise<void>;
  list(options: {
    vaultId: string;
    before: string | null;
    limit: number;
    withArchived: boolean;
  }): Promise<CredentialRecord[]>;
}

/** A stored binding with its MAC and fence. */
export interface StoredBinding extends BindingFields {
  mac: Buffer;
  lowestEpoch: bigint | null;
  ended: boolean | null;
}

/** Bindings, tokens and fences. */
export interface BindingStore {
  /** Stores a binding and its fence; false when the session is bound already. */
  insert(row: BindingFields, mac: Buffer): Promise<boolean>;
  /** Replaces the MCP servers of the binding that has the MAC `before`; false when there is none. */
  replaceServers(row: BindingFields, mac: Buffer, before: Buffer): Promise<boolean>;
  find(sessionId: string): Promise<StoredBinding | undefined>;
  insertToken(row: TokenFields, mac: Buffer): Promise<void>;
  raiseFence(sessionId: string, lowestEpoch: bigint, ended: boolean): Promise<void>;
}

/** Writes and removes secrets at Vault; it cannot read one. */
export interface SecretWriter {
  /** Stores a secret and answers its version. */
  write(vaultId: string, credentialId: string, secret: string): Promise<bigint>;
  /** Destroys a version that was replaced. */
  destroy(vaultId: string, credentialId: string, version: bigint): Promise<void>;
  /** Removes the secret, all versions of it. */
  remove(vaultId: string, credentialId: string): Promise<void>;
}

/** A sealed secret as it came. */
export interface Sealed {
  keyId: string;
  enc: Uint8Array;
  ciphertext: Uint8Array;
}

/** What a secret was sealed for; one sealed for anything else does not open. */
export interface SealPurpose {
  vaultId: string;
  kind: string;
  /** As the one who sealed it wrote it. */
  url: string;
}

/** Opens sealed secrets. */
export interface SealOpener {
  /** The secret that was sealed for that vault and destination; undefined when it cannot be opened. */
  open(sealed: Sealed, purpose: SealPurpose): Promise<Buffer | undefined>;
}
