import { readFileSync } from "node:fs";
import type { Invocation } from "../commands/command.ts";
import { CliError, EXIT } from "../terminal/exit-codes.ts";
import { replaceFile } from "../up/mesh-files.ts";
import { readOperatorFile } from "../up/operator-file.ts";
import { configureExternal, createExternalSupervisorToken } from "../up/vault-bootstrap.ts";
import { type VaultAddress, VaultHttp, VaultRefusal } from "../up/vault-http.ts";
import { readSecret } from "./read-secret.ts";

/**
 * bootstrapVault sets up somebody's own Vault or OpenBao: mount, policies, roles, and an audit file where one is named. Run
 * again it changes nothing. The token that it works with comes from a descriptor or from standard input, and stays as it is.
 */
export async function bootstrapVault({ options, positionals, terminal }: Invocation): Promise<number> {
  const addr = options["vault-addr"];
  if (positionals.length !== 1 || typeof addr !== "string" || !URL.canParse(addr)) {
    throw new CliError("usage: ganglion vault bootstrap --vault-addr <https url>", EXIT.usage);
  }
  const caFile = options["ca-file"];
  const tokenFile = options["supervisor-token-file"];
  const target = {
    addr,
    ...(typeof caFile === "string" ? { caPem: readOperatorFile("ca-file", caFile) } : {}),
    ...(typeof options.namespace === "string" ? { namespace: options.namespace } : {}),
  };
  const auditFile = typeof options["audit-file"] === "string" ? options["audit-file"] : undefined;
  const token = await readToken(options["token-fd"]);
  const http = openHttp(target);
  try {
    const { roleId, warnings } = await configureExternal(http, token, auditFile);
    if (typeof tokenFile === "string") {
      replaceFile(tokenFile, `${await createExternalSupervisorToken(http, token)}\n`);
    }
    terminal.object({ addr, mount: "ganglion", role: "ganglion-proxy", role_id: roleId, warnings });
    terminal.line(`${addr} is ready: mount ganglion/, AppRole ganglion-proxy (role id ${roleId})`);
    if (typeof tokenFile === "string") {
      terminal.line(`the supervisor's token is in ${tokenFile}; it ends within 24 h unless it is renewed`);
    }
    for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
    return EXIT.ok;
  } catch (error) {
    // Its message has the path and Vault's words, never the token.
    if (error instanceof VaultRefusal) throw new CliError(error.message, EXIT.unavailable);
    throw error;
  } finally {
    await http.close();
  }
}

function openHttp(target: VaultAddress): VaultHttp {
  try {
    return new VaultHttp(target);
  } catch (error) {
    throw new CliError((error as Error).message, EXIT.usage);
  }
}

async function readToken(descriptor: unknown): Promise<string> {
  if (descriptor === undefined) return readSecret("Vault token");
  const fd = Number(descriptor);
  if (!Number.isInteger(fd) || fd < 3 || fd > 1023) {
    throw new CliError("--token-fd is the number of an open descriptor from 3", EXIT.usage);
  }
  let token: string;
  try {
    token = readFileSync(fd, "utf8").trim();
  } catch {
    throw new CliError(`descriptor ${fd} cannot be read`, EXIT.noInput);
  }
  if (!/^[\x21-\x7e]{1,4096}$/.test(token))
    throw new CliError(`there is no token on descriptor ${fd}`, EXIT.data);
  return token;
}
