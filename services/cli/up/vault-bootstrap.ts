import {
  configurationDigest,
  configureVault,
  createSupervisorToken,
  enableAudit,
  VAULT_MOUNT,
} from "./vault-configuration.ts";
import { type VaultAddress, VaultHttp, VaultRefusal } from "./vault-http.ts";
import { type VaultKeys, writeVaultKeys } from "./vault-keys.ts";
import { generateRootToken } from "./vault-root-token.ts";
import { AUDIT_FILE } from "./vault-server.ts";
import { initializeVault, unsealVault } from "./vault-unseal.ts";

/** mcp-proxy's login, as it stands in the document on descriptor 3. */
export interface VaultLogin {
  readonly addr: string;
  readonly ca_pem?: string;
  readonly role_id: string;
  readonly wrapped_secret_id: string;
  readonly mount: string;
}

/** What a bootstrap leaves behind. */
export interface BootstrapResult {
  /** May wrap mcp-proxy's login, and nothing else. */
  readonly supervisorToken: string;
  /** What an operator should know, one line each. */
  readonly warnings: readonly string[];
}

/** A vault that the supervisor started itself. */
export interface EmbeddedVault {
  readonly http: VaultHttp;
  /** File for the unseal key and the supervisor's token, 0600. */
  readonly keysFile: string;
  /** How long the vault may take to become active after it was unsealed. */
  readonly activeWithinMs?: number;
}

const PROXY_ROLE = "auth/approle/role/ganglion-proxy";
const WRAP_TTL = "300s";
/** Each start makes another token at somebody else's Vault: those left behind end within a day. */
const EXTERNAL_PERIOD = "24h";
const RENEW_EVERY_MS = 6 * 3_600_000;

/**
 * openEmbeddedVault makes a started vault ready, at the first start and at every later one: keys on the first,
 * unsealing on each, configuration when it changed. Afterwards no root token exists. Call it again after each
 * restart of the vault; a crash at any point is repaired by the next call.
 */
export function openEmbeddedVault(vault: EmbeddedVault): Promise<BootstrapResult> {
  // Two at once would each make keys or tokens that the other does not know of.
  const running = opening.get(vault.keysFile);
  if (running !== undefined) return running;
  const begun = open(vault).finally(() => opening.delete(vault.keysFile));
  opening.set(vault.keysFile, begun);
  return begun;
}

const opening = new Map<string, Promise<BootstrapResult>>();

async function open(vault: EmbeddedVault): Promise<BootstrapResult> {
  const { http, keysFile } = vault;
  const keys = await initializeVault(http, keysFile);
  await unsealVault(http, keys.unsealKey, vault.activeWithinMs ?? 60_000);
  const isCurrent = keys.configuration === configurationDigest();
  if (isCurrent && keys.supervisorToken !== undefined && keys.rootToken === undefined) {
    if (await renewSupervisorToken(http, keys.supervisorToken)) {
      return { supervisorToken: keys.supervisorToken, warnings: [] };
    }
  }
  return configureAsRoot(vault, keys);
}

/** bootstrapExternal configures somebody else's Vault, once, with an operator's token, which stays as it is. */
export async function bootstrapExternal(
  target: VaultAddress & { readonly token: string; readonly auditFile?: string },
): Promise<BootstrapResult> {
  const http = new VaultHttp(target);
  try {
    const { warnings } = await configureExternal(http, target.token, target.auditFile);
    return { supervisorToken: await createExternalSupervisorToken(http, target.token), warnings };
  } finally {
    await http.close();
  }
}

/** configureExternal writes mount, policies and roles to somebody else's Vault, and turns on the audit file that is named. */
export async function configureExternal(
  http: VaultHttp,
  token: string,
  auditFile: string | undefined,
): Promise<{ readonly roleId: string; readonly warnings: readonly string[] }> {
  await configureVault(http, token);
  const warning = await auditWarning(http, token, auditFile);
  return { roleId: await proxyRoleId(http, token), warnings: warning === undefined ? [] : [warning] };
}

/** createExternalSupervisorToken makes the supervisor's token at somebody else's Vault; it ends within a day unless renewed. */
export function createExternalSupervisorToken(http: VaultHttp, token: string): Promise<string> {
  return createSupervisorToken(http, token, EXTERNAL_PERIOD);
}

async function proxyRoleId(http: VaultHttp, token: string): Promise<string> {
  const { data } = (await http.call("GET", `${PROXY_ROLE}/role-id`, { token })).body;
  return (data as { role_id: string }).role_id;
}

/** wrapSecretId gives mcp-proxy's login: the role id, and a secret id that only its first reader can open. */
export async function wrapSecretId(http: VaultHttp, supervisorToken: string): Promise<VaultLogin> {
  const token = supervisorToken;
  const roleId = await proxyRoleId(http, token);
  const wrapped = (await http.call("POST", `${PROXY_ROLE}/secret-id`, { token, wrapTtl: WRAP_TTL, body: {} }))
    .body;
  const wrapInfo = wrapped.wrap_info as { token: string; creation_path: string } | null;
  if (!wrapInfo) throw new Error("Vault did not wrap the secret id");
  const { addr, caPem } = http.address;
  return {
    addr,
    ...(caPem === undefined ? {} : { ca_pem: caPem }),
    role_id: roleId,
    wrapped_secret_id: wrapInfo.token,
    mount: VAULT_MOUNT,
  };
}

/** keepSupervisorToken renews the token, whichever it is by then, for as long as the process lives or until it is stopped. */
export function keepSupervisorToken(http: VaultHttp, supervisorToken: () => string): () => void {
  // One that fails is tried again the next time: four of them fit into the shortest life.
  const renew = () => void renewSupervisorToken(http, supervisorToken()).catch(() => false);
  const timer = setInterval(renew, RENEW_EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** renewSupervisorToken tells whether the token is still good. */
export async function renewSupervisorToken(http: VaultHttp, supervisorToken: string): Promise<boolean> {
  const reply = await http.call("POST", "auth/token/renew-self", {
    token: supervisorToken,
    body: {},
    accept: [400, 403],
  });
  return reply.status === 200;
}

async function configureAsRoot(vault: EmbeddedVault, keys: VaultKeys): Promise<BootstrapResult> {
  const { http, keysFile } = vault;
  const token = await rootToken(http, keys);
  writeVaultKeys(keysFile, { ...keys, rootToken: token });
  await configureVault(http, token);
  const warning = await enableAudit(http, token, AUDIT_FILE);
  const supervisorToken = await createSupervisorToken(http, token);
  const { rootToken: _revoked, ...rest } = keys;
  const after: VaultKeys = { ...rest, supervisorToken, configuration: configurationDigest() };
  writeVaultKeys(keysFile, { ...after, rootToken: token });
  if (keys.supervisorToken !== undefined) {
    await http.call("POST", "auth/token/revoke", {
      token,
      body: { token: keys.supervisorToken },
      accept: [400],
    });
  }
  await http.call("POST", "auth/token/revoke-self", { token, body: {} });
  writeVaultKeys(keysFile, after);
  return { supervisorToken, warnings: warning === undefined ? [] : [warning] };
}

/** A root token that an earlier start left behind, when it is still good, or a new one. */
async function rootToken(http: VaultHttp, keys: VaultKeys): Promise<string> {
  if (keys.rootToken !== undefined) {
    const reply = await http.call("GET", "auth/token/lookup-self", { token: keys.rootToken, accept: [403] });
    if (reply.status === 200) return keys.rootToken;
  }
  return generateRootToken(http, keys.unsealKey);
}

async function auditWarning(
  http: VaultHttp,
  token: string,
  file: string | undefined,
): Promise<string | undefined> {
  try {
    return await enableAudit(http, token, file);
  } catch (cause) {
    // Listing devices takes more rights than writing policies; without them we only cannot tell.
    if (!(cause instanceof VaultRefusal) || cause.status !== 403) throw cause;
    return "the token may not list audit devices: make sure that one is on";
  }
}
