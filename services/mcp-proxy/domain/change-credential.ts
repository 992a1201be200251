import { auditedChange, type ChangeAsker, type ChangeNotes } from "./audited-change.ts";
import type { CredentialConfig, CredentialNetworking } from "./credential-config.ts";
import { MAX_PAIRS } from "./credential-rules.ts";
import { type CredentialDeps, findCredential, missing, openVault } from "./manage-credentials.ts";
import { openSecrets, type SealedSecrets } from "./open-secret.ts";
import { proxyError } from "./proxy-error.ts";
import type { CredentialRecord, RecordChange, SecretDocument } from "./records.ts";
import { isMac } from "./row-mac.ts";

/** What to change of a credential; what is absent stays. */
export interface CredentialChange extends RecordChange, SealedSecrets {
  vaultId: string;
  credentialId: string;
  /** Settings, of the credential's own kind. */
  auth?: OAuthChange | EnvironmentChange;
}

/** What can change of an OAuth credential beside its tokens. */
export interface OAuthChange {
  kind: "mcp_oauth";
  expiresAt?: string;
  /** Empty clears it. */
  scope?: string;
}

/** What can change of an environment variable beside its secret. */
export interface EnvironmentChange {
  kind: "environment_variable";
  networking?: CredentialNetworking;
  injection?: { header?: boolean; body?: boolean };
}

const TRIES = 3;

/** Changes a credential. The versions of the secret that were replaced are destroyed. */
export function updateCredential(
  deps: CredentialDeps,
  change: CredentialChange,
  who: ChangeAsker,
): Promise<CredentialRecord> {
  const { vaultId, credentialId } = change;
  return auditedChange(
    deps.ledger,
    { operation: "vault.update_credential", who, vaultId, credentialId },
    async () => {
      const { workspaceId } = await openVault(deps, vaultId, who);
      const row = await findCredential(deps, change, who);
      refuseUnfit(deps, row, change);
      return { workspaceId, vaultId, credentialId, row, fields: await openFields(deps, row, change) };
    },
    ({ row, fields }, notes) => changeCredential(deps, row, fields, change, notes),
  );
}

async function changeCredential(
  deps: CredentialDeps,
  found: CredentialRecord,
  fields: Partial<SecretDocument>,
  change: CredentialChange,
  notes: ChangeNotes,
): Promise<CredentialRecord> {
  const { vaultId, credentialId } = change;
  const version = await writeFields(deps, found, fields, notes);
  const first = found.version;
  let row = found;
  for (let tries = 1; ; tries += 1) {
    const config = changedConfig(row, change);
    const mac = deps.mac.credential({ ...row, config });
    const stored = await deps.store.change(row, { ...change, version, config, mac }, row.mac);
    if (stored) {
      const replaced = range(first, version);
      if (replaced.length > 0) await deps.writer.destroy(vaultId, credentialId, replaced);
      return stored;
    }
    const now = await deps.store.find(vaultId, credentialId);
    if (!now || now.archivedAt) {
      // Archived meanwhile: what was just written must not stay behind.
      if (version > first) await deps.writer.remove(vaultId, credentialId);
      throw now ? proxyError("CREDENTIAL_ARCHIVED") : missing(credentialId);
    }
    if (tries === TRIES) throw proxyError("CONFLICT");
    row = now;
    refuseUnfit(deps, row, change);
  }
}

/** The settings after a change, by the rules of the kind. */
export function changedConfig(row: CredentialRecord, { auth }: CredentialChange): CredentialConfig {
  const config = { ...row.config };
  if (auth?.kind === "mcp_oauth") {
    if (auth.expiresAt !== undefined) config.expires_at = auth.expiresAt;
    if (auth.scope !== undefined && config.refresh) {
      const { scope: _before, ...refresh } = config.refresh;
      config.refresh = auth.scope === "" ? refresh : { ...refresh, scope: auth.scope };
    }
  }
  if (auth?.kind === "environment_variable") {
    if (auth.networking) config.networking = auth.networking;
    if (auth.injection) {
      const before = config.injection_location ?? { header: false, body: false };
      config.injection_location = {
        header: auth.injection.header ?? before.header,
        body: auth.injection.body ?? before.body,
      };
    }
  }
  return config;
}

function refuseUnfit({ mac }: CredentialDeps, row: CredentialRecord, change: CredentialChange): void {
  // A row that somebody else wrote must not get a good MAC by being changed.
  if (!isMac(row.mac, mac.credential(row))) throw proxyError("ROW_TAMPERED");
  if (row.archivedAt) throw proxyError("CREDENTIAL_ARCHIVED");
  const { auth, metadataSet, metadataRemove } = change;
  // Known before a secret is written: what is refused must leave Vault as it was.
  const keys = new Set([...Object.keys(row.metadata), ...Object.keys(metadataSet)]);
  for (const key of metadataRemove) keys.delete(key);
  if (keys.size > MAX_PAIRS) {
    throw unfit("metadata_set", `at most ${MAX_PAIRS} pairs may be there after the change`);
  }
  if (auth && auth.kind !== row.kind) throw unfit(auth.kind, `the credential is of the kind ${row.kind}`);
  const { refresh } = row.config;
  if (!refresh && change.refreshToken) throw unfit("refresh_token", "the credential has no refresh settings");
  if (!refresh && auth?.kind === "mcp_oauth" && auth.scope !== undefined) {
    throw unfit("mcp_oauth.scope", "the credential has no refresh settings");
  }
  if (change.clientSecret && (!refresh || refresh.token_endpoint_auth === "none")) {
    throw unfit("client_secret", "the credential's token endpoint takes none");
  }
  const { injection_location: places } = changedConfig(row, change);
  if (places && !places.header && !places.body) {
    throw unfit("environment_variable.injection_location", "header or body must be true");
  }
}

async function openFields(
  { seal }: CredentialDeps,
  row: CredentialRecord,
  change: CredentialChange,
): Promise<Partial<SecretDocument>> {
  const fields = await openSecrets(seal, { ...row, statedKey: row.url || row.secretName }, change);
  const { auth } = change;
  if (auth?.kind === "mcp_oauth" && auth.expiresAt !== undefined) fields.expires_at = auth.expiresAt;
  return fields;
}

/** Answers the version that has them; without any it is the one that is there. */
async function writeFields(
  { writer }: CredentialDeps,
  { vaultId, credentialId, kind, version }: CredentialRecord,
  fields: Partial<SecretDocument>,
  notes: ChangeNotes,
): Promise<bigint> {
  if (Object.keys(fields).length === 0) return version;
  // The document of an OAuth credential has fields that this change leaves as they are, and that nobody here may read.
  const written =
    kind === "mcp_oauth"
      ? await writer.patch(vaultId, credentialId, fields)
      : await writer.write(vaultId, credentialId, fields as SecretDocument);
  if (written === undefined) throw proxyError("CRED_MISSING");
  notes.wrote(written);
  return written.version;
}

function range(from: bigint, to: bigint): bigint[] {
  const versions: bigint[] = [];
  for (let version = from; version < to; version += 1n) versions.push(version);
  return versions;
}

function unfit(field: string, description: string) {
  return proxyError("INVALID_FIELD", { message: `${field}: ${description}`, metadata: { field } });
}
