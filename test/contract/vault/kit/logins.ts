import { randomBytes } from "node:crypto";
import { wrapSecretId } from "../../../../services/cli/up/vault-bootstrap.ts";
import type { VaultHttp } from "../../../../services/cli/up/vault-http.ts";
import type { SharedVault } from "./test-vault.ts";

/** What a login or a token creation hands out. */
export interface Issued {
  readonly client_token: string;
  readonly accessor: string;
  readonly policies: readonly string[];
  readonly token_policies: readonly string[];
  readonly lease_duration: number;
  readonly renewable: boolean;
  readonly orphan: boolean;
  readonly entity_id: string;
  readonly metadata: Readonly<Record<string, string>> | null;
}

/** loginAsProxy takes mcp-proxy's whole way: a wrapped secret id, opened, and the login with it. */
export async function loginAsProxy(vault: SharedVault): Promise<Issued> {
  const login = await wrapSecretId(vault.http, vault.supervisorToken);
  const opened = await vault.http.call("POST", "sys/wrapping/unwrap", { token: login.wrapped_secret_id });
  const { secret_id: secretId } = opened.body.data as { secret_id: string };
  const body = { role_id: login.role_id, secret_id: secretId };
  return (await vault.http.call("POST", "auth/approle/login", { body })).body.auth as Issued;
}

/** createSessionToken makes a session's token for one vault, as mcp-proxy does. */
export async function createSessionToken(
  http: VaultHttp,
  proxyToken: string,
  vaultId: string,
  sessionId = "sesn_test",
): Promise<Issued> {
  const body = { entity_alias: vaultId, ttl: "15m", meta: { session: sessionId } };
  const reply = await http.call("POST", "auth/token/create/ganglion-session", { token: proxyToken, body });
  return reply.body.auth as Issued;
}

/** newVaultId makes an id of a vault that no other test uses. */
export function newVaultId(): string {
  return `vlt_${randomBytes(10).toString("hex")}`;
}

/** newSecret makes a value that is found nowhere by chance. */
export function newSecret(): string {
  return `cnry_${randomBytes(24).toString("hex")}`;
}
