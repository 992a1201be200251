import { isCredentialId, isVaultId } from "../domain/ids.ts";
import { proxyError } from "../domain/proxy-error.ts";

/**
 * The path of a credential below a KV mount. Ids are ours and opaque; anything that does not look exactly like one
 * never becomes part of a path, whatever a path library would make of it (case A113).
 */
export function credentialPath(vaultId: string, credentialId: string): string {
  if (!isVaultId(vaultId)) throw proxyError("VAULT_NOT_FOUND");
  if (!isCredentialId(credentialId)) throw proxyError("CREDENTIAL_NOT_FOUND");
  return `vaults/${vaultId}/${credentialId}`;
}
