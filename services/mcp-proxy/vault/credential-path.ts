import { proxyError } from "../domain/proxy-error.ts";

const VAULT_FORM = /^vlt_[0-9a-z_]{1,76}$/;
const CREDENTIAL_FORM = /^vcrd_[0-9a-z]{1,76}$/;

/**
 * The path of a credential below a KV mount. Ids are ours and opaque; anything that does not look exactly like one
 * never becomes part of a path, whatever a path library would make of it (case A113).
 */
export function credentialPath(vaultId: string, credentialId: string): string {
  if (!isVaultId(vaultId)) throw proxyError("VAULT_NOT_FOUND");
  if (!isCredentialId(credentialId)) throw proxyError("CREDENTIAL_NOT_FOUND");
  return `vaults/${vaultId}/${credentialId}`;
}

/** True for a text of the exact form of a vault's id. Lower case only: Vault compares entity aliases so. */
export function isVaultId(text: string): boolean {
  return VAULT_FORM.test(text);
}

/** True for a text of the exact form of a credential's id. */
export function isCredentialId(text: string): boolean {
  return CREDENTIAL_FORM.test(text);
}
