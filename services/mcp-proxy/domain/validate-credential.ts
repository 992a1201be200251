import { auditedChange, type ChangeAsker } from "./audited-change.ts";
import { refuseDecoys } from "./decoys.ts";
import { type CredentialDeps, missing } from "./manage-credentials.ts";
import type { AuditedCaller } from "./new-record.ts";
import { proxyError, type Reason, reasonOf } from "./proxy-error.ts";
import type { CredentialRecord, VaultStore } from "./records.ts";
import { isMac } from "./row-mac.ts";

/** An HTTP answer as a validation may show it: without any secret that was sent. */
export interface SeenAnswer {
  status: number;
  contentType: string;
  body: string;
  isTruncated: boolean;
}

/** How a credential did at its MCP server. */
export interface Validation {
  verdict: "valid" | "invalid" | "unknown";
  hasRefreshToken: boolean;
  /** The step that failed; null when none did, or there was no token to try. */
  probe: { method: string; answer: SeenAnswer | null } | null;
  /** The refresh that was tried after a refusal; null when none was. */
  refresh: {
    status: "succeeded" | "failed" | "connect_error" | "no_refresh_token";
    answer: SeenAnswer | null;
  } | null;
}

/** Tries a credential that goes to an MCP server, at that server. Its row's MAC has been checked. */
export type CredentialValidator = (
  credential: CredentialRecord,
  /** Whose it is, and who wants to know. */
  asked: AuditedCaller & { workspaceId: string },
) => Promise<Validation>;

/** What a credential is tried with: what every MCP server is asked first. */
export const FIRST_METHOD = "initialize";
/** The server may not be reached from here, or cannot be: nothing was learned about the credential. */
const UNTRIED: (Reason | undefined)[] = [
  "DEST_NOT_ALLOWED",
  "SCHEME_NOT_ALLOWED",
  "URL_NOT_CANONICAL",
  "UPSTREAM_UNREACHABLE",
];

/** What validating needs. */
export type ValidateDeps = Pick<CredentialDeps, "vaults" | "store" | "mac" | "ledger"> & {
  validate: CredentialValidator;
  vaultStore: Pick<VaultStore, "findMany">;
};

interface CredentialName {
  vaultId: string;
  credentialId: string;
}

/** Validates a credential: those whose secret is gone are invalid without a try. A change, since it may be renewed. */
export function validateCredential(
  deps: ValidateDeps,
  name: CredentialName,
  who: ChangeAsker,
): Promise<Validation> {
  return auditedChange(
    deps.ledger,
    { operation: "vault.validate_credential", who, ...name },
    async () => {
      const use = {
        operation: "vault.validate_credential",
        ...who,
        workspaceId: who.workspaceId ?? "",
      } as const;
      const { credentialId } = name;
      await refuseDecoys(deps, await deps.vaultStore.findMany([name.vaultId]), { ...use, credentialId });
      const { workspaceId } = await deps.vaults.get(name.vaultId, who);
      return { workspaceId, ...name, row: await findTriable(deps, name) };
    },
    ({ workspaceId, row }) => tryCredential(deps, row, workspaceId, who),
  );
}

async function findTriable({ store, mac }: ValidateDeps, name: CredentialName): Promise<CredentialRecord> {
  const row = await store.find(name.vaultId, name.credentialId);
  if (!row) throw missing(name.credentialId);
  if (row.kind !== "mcp_oauth" && row.kind !== "static_bearer") {
    const message = `a credential of the kind ${row.kind} has no server to be tried at`;
    throw proxyError("INVALID_FIELD", { message, metadata: { field: "credential_id" } });
  }
  if (!isMac(row.mac, mac.credential(row))) throw proxyError("ROW_TAMPERED");
  return row;
}

async function tryCredential(
  deps: ValidateDeps,
  row: CredentialRecord,
  workspaceId: string,
  who: ChangeAsker,
): Promise<Validation> {
  if (row.archivedAt) return { verdict: "invalid", hasRefreshToken: false, probe: null, refresh: null };
  try {
    return await deps.validate(row, { ...who, workspaceId });
  } catch (error) {
    if (!UNTRIED.includes(reasonOf(error))) throw error;
    const hasRefreshToken = row.config.refresh !== undefined;
    return {
      verdict: "unknown",
      hasRefreshToken,
      probe: { method: FIRST_METHOD, answer: null },
      refresh: null,
    };
  }
}
