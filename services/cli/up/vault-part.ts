import { join } from "node:path";
import { compileCache } from "./compile-cache.ts";
import { ManagedProcess } from "./managed-process.ts";
import { makeFolder } from "./mesh-files.ts";
import type { PartsContext } from "./parts-context.ts";
import { baseEnvironment, nodeProgram } from "./service-specs.ts";
import type { ExternalVault } from "./supervisor-options.ts";
import {
  bootstrapExternal,
  keepSupervisorToken,
  openEmbeddedVault,
  type VaultLogin,
  wrapSecretId,
} from "./vault-bootstrap.ts";
import { VAULT_MOUNT } from "./vault-configuration.ts";
import { VaultHttp, VaultRefusal } from "./vault-http.ts";
import { chooseVault } from "./vault-server.ts";

/** The vault of the mesh, ours or somebody else's. */
export interface VaultPart {
  /** A fresh login, good for one start of mcp-proxy. */
  login(): Promise<VaultLogin>;
  /** Makes it read a renewed certificate. */
  reload(): void;
}

const START_TIMEOUT_MS = 60_000;
const WRAP_TTL = "300s";
const REACH_TRIES = 3;

/** startVaultPart makes a vault ready for mcp-proxy. `onProcess` is called before an embedded one starts. */
export function startVaultPart(
  context: PartsContext,
  onProcess: (process: ManagedProcess) => void,
): Promise<VaultPart> {
  const { vault } = context.options;
  return vault ? useExternal(vault) : startEmbedded(context, onProcess);
}

async function startEmbedded(
  { options, files, users, ports, certificates }: PartsContext,
  onProcess: (process: ManagedProcess) => void,
): Promise<VaultPart> {
  const folder = join(options.state, "vault");
  // Its user passes through to its own folder below; the unseal key stays with us.
  makeFolder(folder, 0o711);
  const server = chooseVault({
    dataDir: join(folder, "data"),
    tlsDir: certificates.directory("vault"),
    port: ports.vault as number,
    path: baseEnvironment().PATH as string,
    checkout: options.checkout,
    node: nodeProgram(options.checkout),
  });
  server.prepare(users.vault);
  const http = new VaultHttp({ addr: server.addr, caPem: certificates.caPem });
  const vault = { http, keysFile: join(folder, "keys.json") };
  let token = "";
  let failure: Error | undefined;
  const managed = new ManagedProcess({
    name: "vault",
    command: server.command,
    env: { ...baseEnvironment(), ...compileCache(options.state, users.vault), ...server.env },
    cwd: server.cwd,
    ...(users.vault ? { user: users.vault } : {}),
    logFile: join(files.logs, "vault.log"),
    // A vault that was started again is sealed: it is ready only when it has been opened.
    isReady: async () => {
      try {
        const opened = await openEmbeddedVault(vault);
        token = opened.supervisorToken;
        for (const warning of opened.warnings) console.error(`vault: ${warning}`);
        return true;
      } catch (error) {
        failure = error as Error;
        return false;
      }
    },
  });
  onProcess(managed);
  await managed.start(START_TIMEOUT_MS).catch((error: Error) => {
    throw new Error(failure ? `${error.message}\n  ${failure.message}` : error.message);
  });
  keepSupervisorToken(http, () => token);
  return {
    login: () => wrapSecretId(http, token),
    reload: () => {
      const pid = managed.record?.pid;
      if (server.reloadSignal && pid) process.kill(pid, server.reloadSignal);
    },
  };
}

async function useExternal(vault: ExternalVault): Promise<VaultPart> {
  const address = {
    addr: vault.addr,
    ...(vault.caPem ? { caPem: vault.caPem } : {}),
    ...(vault.namespace ? { namespace: vault.namespace } : {}),
  };
  const http = new VaultHttp(address);
  if (vault.roleId && vault.secretId) {
    const { roleId, secretId } = vault;
    await insist(() => checkUses(http, roleId, secretId));
    return { login: () => wrapGivenSecretId(http, roleId, secretId), reload: () => {} };
  }
  if (!vault.token) {
    throw new Error("VAULT_ADDR needs VAULT_ROLE_ID and VAULT_SECRET_ID, or VAULT_TOKEN to set the vault up");
  }
  const { token } = vault;
  const { supervisorToken, warnings } = await insist(() => bootstrapExternal({ ...address, token }));
  for (const warning of warnings) console.error(`vault: ${warning}`);
  keepSupervisorToken(http, () => supervisorToken);
  return { login: () => wrapSecretId(http, supervisorToken), reload: () => {} };
}

/** A first start keeps this process busy with making the database; an answer that came meanwhile may look late. */
async function insist<T>(call: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await call();
    } catch (error) {
      const isLost = error instanceof VaultRefusal && error.status === 0;
      if (!isLost || tries === REACH_TRIES) throw error;
    }
  }
}

/** mcp-proxy logs in at each of its starts: a secret id that is used up by then would only show when it dies. */
async function checkUses(http: VaultHttp, roleId: string, secretId: string): Promise<void> {
  await wrapGivenSecretId(http, roleId, secretId);
  await wrapGivenSecretId(http, roleId, secretId).catch((error: unknown) => {
    if (error instanceof VaultRefusal && error.status === 0) throw error;
    throw new Error(
      "VAULT_SECRET_ID can be used once only, and mcp-proxy needs it at each start: give one without a limit of uses," +
        " or VAULT_TOKEN instead",
    );
  });
}

/** A secret id that somebody gave us is wrapped by the login it belongs to, so that mcp-proxy gets all of them alike. */
async function wrapGivenSecretId(http: VaultHttp, roleId: string, secretId: string): Promise<VaultLogin> {
  const body = { role_id: roleId, secret_id: secretId };
  const login = (await http.call("POST", "auth/approle/login", { body })).body;
  const token = (login.auth as { client_token: string }).client_token;
  const wrapped = (
    await http.call("POST", "sys/wrapping/wrap", { token, wrapTtl: WRAP_TTL, body: { secret_id: secretId } })
  ).body;
  await http.call("POST", "auth/token/revoke-self", { token, body: {}, accept: [403] });
  return {
    addr: http.address.addr,
    ...(http.address.caPem ? { ca_pem: http.address.caPem } : {}),
    role_id: roleId,
    wrapped_secret_id: (wrapped.wrap_info as { token: string }).token,
    mount: VAULT_MOUNT,
  };
}
