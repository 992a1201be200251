const VAULT_FORM = /^vlt_[0-9a-z_]{1,60}$/;
const CREDENTIAL_FORM = /^vcrd_[0-9a-z]{1,59}$/;
const SESSION_FORM = /^sesn_[0-9A-Za-z_]{1,59}$/;
const HAND_FORM = /^hand_[0-9A-Za-z_]{1,59}$/;
const WORKSPACE_FORM = /^wrkspc_[0-9a-z_]{1,53}$/;

/** True for a text of the exact form of a vault's id. Lower case only: Vault compares entity aliases so. */
export function isVaultId(text: string): boolean {
  return VAULT_FORM.test(text);
}

/** True for a text of the exact form of a credential's id. */
export function isCredentialId(text: string): boolean {
  return CREDENTIAL_FORM.test(text);
}

/** True for a text of the form of a session's id. */
export function isSessionId(text: string): boolean {
  return SESSION_FORM.test(text);
}

/** True for a text of the form of a hand's id. */
export function isHandId(text: string): boolean {
  return HAND_FORM.test(text);
}

/** True for a text of the form of a workspace's id. */
export function isWorkspaceId(text: string): boolean {
  return WORKSPACE_FORM.test(text);
}

/** The id of a workspace's system vault. */
export function systemVaultId(workspaceId: string): string {
  return `vlt_system_${workspaceId.slice("wrkspc_".length)}`;
}
