import type { VaultClient } from "./vault-client.ts";

/** A credential that does not exist: its path stands for all of them. */
const CREDENTIAL = "vaults/vlt_probe/vcrd_probe";
const AUDIT = "sys/audit";

// What mcp-proxy must not be able to do, whatever else its policies say.
const NOTHING_AT = (mount: string) => [
  "sys/policies/acl/ganglion-session",
  "sys/mounts/ganglion-probe",
  "sys/auth/ganglion-probe",
  "sys/raw/ganglion-probe",
  "auth/token/create",
  "auth/token/create-orphan",
  "auth/token/roles/ganglion-session",
  "auth/approle/role/ganglion-proxy/secret-id",
  "identity/entity",
  "identity/entity-alias",
  "secret/data/ganglion-probe",
  `${mount}/data/ganglion-probe`,
];

/** What was found out about mcp-proxy's token. */
export interface Privileges {
  /** What is wrong, one line each. */
  problems: string[];
  /** It may list audit devices. It need not. */
  maySeeAudit: boolean;
}

/**
 * Asks Vault what mcp-proxy's token may do on a list of paths, and answers what is wrong with it: more than it needs
 * (case A124), or less than it cannot work without.
 */
export async function examinePrivileges(
  client: VaultClient,
  mount: string,
  token: string,
): Promise<Privileges> {
  const credential = `${mount}/data/${CREDENTIAL}`;
  const macKey = `${mount}/data/proxy/mac-key`;
  const nothing = NOTHING_AT(mount);
  const paths = [...nothing, credential, macKey, AUDIT];
  const { data } = await client.write("sys/capabilities-self", { paths }, token);
  const at = (path: string): string[] => {
    const found = data?.[path];
    return Array.isArray(found) ? found.map(String) : [];
  };
  const problems: string[] = [];
  const credentialCaps = at(credential).sort().join();
  if (credentialCaps !== "create,patch,update") {
    const must = "must be create, patch and update, without read";
    problems.push(`${credential}: ${credentialCaps || "no answer"}; ${must}`);
  }
  const keyCaps = at(macKey).sort().join();
  if (keyCaps !== "create,read")
    problems.push(`${macKey}: ${keyCaps || "no answer"}; must be create and read`);
  for (const path of nothing) {
    const caps = at(path).join();
    if (caps !== "deny") problems.push(`${path}: ${caps || "no answer"}; must be denied`);
  }
  // Listing devices takes both.
  const maySeeAudit = ["read", "sudo"].every((capability) => at(AUDIT).includes(capability));
  return { problems, maySeeAudit };
}

/** True when an audit device is on; only for a token that may see that (case A126). */
export async function hasAuditDevice(client: VaultClient, token: string): Promise<boolean> {
  const { data } = await client.read(AUDIT, token);
  return Object.keys(data ?? {}).length > 0;
}
