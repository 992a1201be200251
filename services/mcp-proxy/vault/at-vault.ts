import type { SecretOwner } from "../domain/ports.ts";
import { proxyError } from "../domain/proxy-error.ts";
import type { HeldToken, SessionTokens } from "./session-tokens.ts";
import { isVaultFailure, VaultFailure } from "./vault-failure.ts";

/** Works at Vault; whatever goes wrong there is one error for those who asked. */
export async function atVault<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof VaultFailure) throw proxyError("VAULT_UNAVAILABLE", { cause: error });
    throw error;
  }
}

/** Reads with the session's own Vault token. */
export async function withSessionToken<T>(
  tokens: SessionTokens,
  owner: SecretOwner,
  vaultId: string,
  read: (held: HeldToken) => Promise<T>,
): Promise<T> {
  const held = await tokens.get(owner, vaultId);
  try {
    return await read(held);
  } catch (error) {
    if (!isVaultFailure(error, "denied")) throw error;
    // It may have ended at Vault before its time; the fence has just been checked, so one new one is right.
    tokens.forget(owner, vaultId, held.token);
    return read(await tokens.get(owner, vaultId));
  }
}
