import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { type VaultHttp, VaultRefusal } from "./vault-http.ts";

/** Where the credentials are, and the names of what is made for them. */
export const VAULT_MOUNT = "ganglion";
const PROXY_ROLE = "ganglion-proxy";
const SESSION_ROLE = "ganglion-session";
const SUPERVISOR_POLICY = "ganglion-supervisor";
const POLICIES = [SESSION_ROLE, PROXY_ROLE, SUPERVISOR_POLICY] as const;
const FOLDER = new URL("../../../deploy/vault/", import.meta.url);

/** Settings of the AppRole that mcp-proxy logs in with: a secret id opens once; the token lives while it is renewed. */
const PROXY_ROLE_SETTINGS = {
  token_policies: [PROXY_ROLE],
  token_no_default_policy: true,
  token_period: "1h",
  token_type: "service",
  bind_secret_id: true,
  secret_id_num_uses: 1,
  secret_id_ttl: "10m",
};

/** Settings of the role that session tokens are made through. */
const SESSION_ROLE_SETTINGS = {
  allowed_policies: [SESSION_ROLE],
  allowed_entity_aliases: ["vlt_*"],
  orphan: true,
  renewable: true,
  token_explicit_max_ttl: "24h",
  token_no_default_policy: true,
  token_type: "service",
};

/** configurationDigest changes with everything that configureVault writes. */
export function configurationDigest(): string {
  const parts = [...POLICIES.map(readPolicy), PROXY_ROLE_SETTINGS, SESSION_ROLE_SETTINGS];
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}

/** configureVault writes mounts, policies and roles with a token that may; what is there already stays or is brought up to date. */
export async function configureVault(http: VaultHttp, token: string): Promise<void> {
  await enableMounts(http, token);
  await writePolicies(http, token);
  await http.call("POST", `auth/token/roles/${SESSION_ROLE}`, { token, body: SESSION_ROLE_SETTINGS });
  await http.call("POST", `auth/approle/role/${PROXY_ROLE}`, { token, body: PROXY_ROLE_SETTINGS });
}

/** enableMounts makes the KV version 2 mount and AppRole logins where they are missing. */
export async function enableMounts(http: VaultHttp, token: string): Promise<void> {
  const mounts = (await http.call("GET", "sys/mounts", { token })).body.data as Mounts;
  const mount = mounts[`${VAULT_MOUNT}/`];
  if (!mount) {
    const body = { type: "kv", description: "Ganglion credentials", options: { version: "2" } };
    await http.call("POST", `sys/mounts/${VAULT_MOUNT}`, { token, body });
  } else if (mount.type !== "kv" || mount.options?.version !== "2") {
    throw new Error(`${VAULT_MOUNT}/ is in use and is not a KV version 2 mount`);
  }
  const logins = (await http.call("GET", "sys/auth", { token })).body.data as Mounts;
  if (!logins["approle/"]) await http.call("POST", "sys/auth/approle", { token, body: { type: "approle" } });
  else if (logins["approle/"].type !== "approle")
    throw new Error("auth/approle/ is in use by something else");
}

/** writePolicies writes the policies of deploy/vault; the session's names this Vault's token mount. */
export async function writePolicies(http: VaultHttp, token: string): Promise<void> {
  const logins = (await http.call("GET", "sys/auth", { token })).body.data as Mounts;
  const accessor = logins["token/"]?.accessor;
  if (!accessor) throw new Error("Vault does not tell the accessor of its token mount");
  for (const name of POLICIES) {
    const policy = readPolicy(name).replaceAll("TOKEN_MOUNT_ACCESSOR", accessor);
    await http.call("PUT", `sys/policies/acl/${name}`, { token, body: { policy } });
  }
}

/** createSupervisorToken makes the token that can wrap mcp-proxy's login and do nothing else; it lives while it is renewed. */
export async function createSupervisorToken(
  http: VaultHttp,
  token: string,
  period = "768h",
): Promise<string> {
  const { body } = await http.call("POST", "auth/token/create-orphan", {
    token,
    body: {
      policies: [SUPERVISOR_POLICY],
      no_default_policy: true,
      period,
      renewable: true,
      display_name: SUPERVISOR_POLICY,
    },
  });
  return (body.auth as { client_token: string }).client_token;
}

/** enableAudit turns on the audit file and says what to do where Vault does not let it; undefined when one is on. */
export async function enableAudit(
  http: VaultHttp,
  token: string,
  filePath: string | undefined,
): Promise<string | undefined> {
  const devices = (await http.call("GET", "sys/audit", { token })).body.data as Record<string, unknown>;
  if (devices["ganglion/"]) return undefined;
  if (filePath === undefined) {
    return Object.keys(devices).length > 0
      ? undefined
      : "no audit device is on: reads of credentials leave no trace in Vault";
  }
  try {
    const body = { type: "file", options: { file_path: filePath } };
    await http.call("PUT", "sys/audit/ganglion", { token, body });
    return undefined;
  } catch (cause) {
    if (!(cause instanceof VaultRefusal) || cause.status !== 400) throw cause;
    return `the audit file could not be turned on: ${cause.errors.join("; ")}`;
  }
}

type Mounts = Record<
  string,
  { type: string; accessor?: string; options?: Record<string, string> | null } | undefined
>;
function readPolicy(name: string): string {
  return readFileSync(new URL(`${name}.hcl`, FOLDER), "utf8");
}
