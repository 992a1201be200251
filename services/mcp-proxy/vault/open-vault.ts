import type { Logger } from "../../common/log/create-logger.ts";
import { loadAuditHmacKey } from "./audit-hmac-key.ts";
import { examinePrivileges, hasAuditDevice } from "./check-privileges.ts";
import { loadProxyKeys, type ProxyKeys } from "./proxy-keys.ts";
import { logIn, type ProxyLogin, type VaultBootstrap } from "./proxy-login.ts";
import { createTransport } from "./transport.ts";
import { createVaultClient, type VaultClient } from "./vault-client.ts";
import { watchDenials } from "./watch-denials.ts";

/** A Vault that was found to be in order. */
export interface OpenVault {
  client: VaultClient;
  mount: string;
  login: ProxyLogin;
  keys: ProxyKeys;
  /** For the audit log's HMACs; 32 bytes. */
  auditHmacKey: Buffer;
}

/** mcp-proxy's token may do more, or less, than it must (case A124). */
export class WrongPrivileges extends Error {
  override readonly name = "WrongPrivileges";
}

/** Logs in, checks that the login is neither wider nor narrower than it should be, and reads mcp-proxy's keys. */
export async function openVault(
  bootstrap: VaultBootstrap & { addr: string; ca_pem?: string; mount: string },
  log: Logger,
  onLost: () => void,
): Promise<OpenVault> {
  const client = createVaultClient(bootstrap.addr, createTransport(bootstrap.ca_pem));
  const login = await logIn(client, bootstrap, {
    onLost: (failure) => {
      log.fatal({ err: failure }, "the Vault login is lost");
      onLost();
    },
    onRenewalFailed: (failure) =>
      log.warn({ err: failure }, "renewal of the Vault login failed, trying again"),
  });
  const { problems, maySeeAudit } = await examinePrivileges(client, bootstrap.mount, login.token());
  if (problems.length > 0) {
    throw new WrongPrivileges(`mcp-proxy's Vault login has the wrong privileges: ${problems.join("; ")}`);
  }
  if (maySeeAudit && !(await hasAuditDevice(client, login.token()))) {
    log.warn("Vault has no audit device on: reads of credentials leave no trace there");
  }
  const keys = await loadProxyKeys(client, bootstrap.mount, login.token());
  const { mount } = bootstrap;
  const auditHmacKey = await loadAuditHmacKey(client, { mount, token: login.token() });
  return { client: watchDenials(client, login), mount, login, keys, auditHmacKey };
}
