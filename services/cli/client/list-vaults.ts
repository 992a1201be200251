import { sealPurposes } from "../../common/seal/seal-purposes.ts";
import { Credential, Vault } from "../../gen/ganglion/vault/v1/vault_service.ts";
import type { Invocation } from "../commands/command.ts";
import type { Mesh } from "./connect-mesh.ts";

/** listVaults shows the vaults of the default workspace, page by page. */
export async function listVaults(mesh: Mesh, { options, terminal }: Invocation): Promise<void> {
  const rows = [["VAULT", "NAME", "CREATED"]];
  for (let pageToken = ""; ; ) {
    const page = await mesh.vaults.listVaults({
      pageSize: 100,
      pageToken,
      includeArchived: options.archived === true,
      workspaceId: "",
    });
    for (const one of page.vaults) {
      terminal.object(Vault.toJSON(one));
      const kind = one.isSystem ? " (system)" : one.isDecoy ? " (decoy)" : "";
      const note = kind + (one.archiveTime ? " (archived)" : "");
      rows.push([one.id, one.displayName + note, day(one.createTime)]);
    }
    pageToken = page.nextPageToken;
    if (!pageToken) break;
  }
  terminal.table(rows);
}

/** listCredentials shows the records of a vault's credentials, page by page. */
export async function listCredentials(
  mesh: Mesh,
  vaultId: string,
  { options, terminal }: Invocation,
): Promise<void> {
  const rows = [["CREDENTIAL", "KIND", "FOR", "NAME", "UPDATED"]];
  for (let pageToken = ""; ; ) {
    const page = await mesh.vaults.listCredentials({
      vaultId,
      pageSize: 100,
      pageToken,
      includeArchived: options.archived === true,
    });
    for (const one of page.credentials) {
      terminal.object(Credential.toJSON(one));
      const { purpose = "", destination = "" } = one.auth ? sealPurposes(vaultId, one.auth).secret : {};
      const name = one.displayName + (one.archiveTime ? " (archived)" : "");
      rows.push([one.id, purpose, destination, name, day(one.updateTime)]);
    }
    pageToken = page.nextPageToken;
    if (!pageToken) break;
  }
  terminal.table(rows);
}

function day(at: { seconds: bigint } | undefined): string {
  return at ? new Date(Number(at.seconds) * 1000).toISOString() : "";
}
