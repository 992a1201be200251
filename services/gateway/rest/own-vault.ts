import { newId } from "../../common/ids/new-id.ts";
import { sealPurposes } from "../../common/seal/seal-purposes.ts";
import { sealSecret } from "../../common/seal/seal-secret.ts";
import type { Session } from "../../gen/ganglion/session/v1/session_service.ts";
import type { RepositoryToken } from "../domain/repositories-from-json.ts";
import type { RestContext, RestDeps } from "./rest-deps.ts";

const NAME = "Tokens of one session's repositories";

/**
 * makeOwnVault stores the tokens of a session's repositories in a vault of the session's own, each sealed to mcp-proxy
 * first, and returns the vault's id; "" when there are none. A vault that cannot be filled is removed again.
 */
export async function makeOwnVault(
  { vaults, log }: RestDeps,
  c: RestContext,
  tokens: readonly RepositoryToken[],
): Promise<string> {
  if (tokens.length === 0) return "";
  const call = c.get("call");
  const request = {
    requestId: c.get("requestId"),
    displayName: NAME,
    metadata: {},
    workspaceId: "",
    isDecoy: false,
  };
  const vaultId = (await vaults.createVault(request, call)).vault?.id ?? "";
  try {
    const key = await vaults.getSealingKey({}, call);
    for (const { url, token } of tokens) {
      const auth = { $case: "staticBearer" as const, value: { mcpServerUrl: url } };
      const secret = await sealSecret(key, sealPurposes(vaultId, auth).secret, token);
      const named = { requestId: newId("req"), vaultId, displayName: "", metadata: {}, auth };
      await vaults.createCredential(
        { ...named, secret, refreshToken: undefined, clientSecret: undefined },
        call,
      );
    }
    return vaultId;
  } catch (error) {
    await removeOwnVault({ vaults, log }, c, vaultId);
    throw error;
  }
}

/** replaceToken seals another token into the credential of a repository; false when there is none. */
export async function replaceToken(
  { vaults }: Pick<RestDeps, "vaults">,
  c: RestContext,
  vaultId: string,
  { url, token }: RepositoryToken,
): Promise<boolean> {
  if (vaultId === "") return false;
  const call = c.get("call");
  const request = { vaultId, pageSize: 100, pageToken: "", includeArchived: false };
  const { credentials } = await vaults.listCredentials(request, call);
  const found = credentials.find(
    ({ auth }) => auth?.$case === "staticBearer" && isSame(auth.value.mcpServerUrl, url),
  );
  if (!found?.auth) return false;
  const key = await vaults.getSealingKey({}, call);
  const secret = await sealSecret(key, sealPurposes(vaultId, found.auth).secret, token);
  const unchanged = { refreshToken: undefined, clientSecret: undefined, metadataSet: {}, metadataRemove: [] };
  await vaults.updateCredential(
    { credentialId: found.id, vaultId, secret, ...unchanged, auth: undefined },
    call,
  );
  return true;
}

/** mcp-proxy keeps addresses in their normal form, without a slash at the end. */
function isSame(kept: string, given: string): boolean {
  return kept === given || (URL.canParse(given) && new URL(given).href.replace(/\/+$/, "") === kept);
}

/** removeOwnVault removes the vault of a session that was not made. */
export async function removeOwnVault(
  { vaults, log }: Pick<RestDeps, "vaults" | "log">,
  c: RestContext,
  vaultId: string,
): Promise<void> {
  if (vaultId === "") return;
  await vaults.deleteVault({ vaultId }, c.get("call")).catch((error: unknown) => {
    log.warn({ err: error, vault_id: vaultId }, "the vault of a session that was not made is left");
  });
}

/**
 * archiveOwnVault makes the tokens unusable for good when the session that they were given for has ended; forks have
 * them from there and leave them alone. The session's binding has ended already: a failure leaves a vault that its owner
 * sees in the list.
 */
export async function archiveOwnVault(
  { vaults, log }: Pick<RestDeps, "vaults" | "log">,
  c: RestContext,
  session: Session | undefined,
): Promise<void> {
  if (!session || session.ownVaultId === "" || session.forkedFromSessionId !== "") return;
  const vaultId = session.ownVaultId;
  await vaults.archiveVault({ vaultId }, c.get("call")).catch((error: unknown) => {
    log.warn({ err: error, vault_id: vaultId }, "the vault of a session that has ended is not archived");
  });
}
