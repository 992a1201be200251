import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { freePort } from "../../../../services/cli/up/free-port.ts";
import {
  configureVault,
  createSupervisorToken,
  enableAudit,
} from "../../../../services/cli/up/vault-configuration.ts";
import { type VaultAddress, VaultHttp } from "../../../../services/cli/up/vault-http.ts";
import { AUDIT_FILE, chooseVault, type VaultServer } from "../../../../services/cli/up/vault-server.ts";
import { createAuthority, issueCertificate } from "../../../../services/common/tls/issue-certificate.ts";

/** A real server takes its time to become active. */
export const SLOW_MS = 120_000;
const CHECKOUT = resolve(import.meta.dirname, "../../../..");

/** A vault of the test's own: the development vault, or the `vault` or `bao` on PATH. */
export interface LocalVault {
  readonly kind: VaultServer["kind"];
  readonly address: VaultAddress;
  readonly http: VaultHttp;
  readonly folder: string;
  readonly tlsDir: string;
  readonly auditFile: string;
  readonly pid: () => number;
  /** Ends the process with a signal and starts it again on the same data. */
  restart(signal: NodeJS.Signals): Promise<void>;
  /** Everything the process has printed. */
  output(): string;
  stop(): Promise<void>;
}

/** startVault starts an empty vault, not yet initialized. */
export async function startVault(): Promise<LocalVault> {
  const folder = mkdtempSync(join(tmpdir(), "ganglion-vault-"));
  const tlsDir = join(folder, "tls");
  const caPem = await writeCertificates(tlsDir);
  const port = await freePort();
  const server = chooseVault({
    dataDir: join(folder, "vault"),
    tlsDir,
    port,
    path: process.env.PATH ?? "",
    checkout: CHECKOUT,
    node: process.execPath,
  });
  const address = { addr: server.addr, caPem };
  const http = new VaultHttp(address);
  let output = "";
  let child: ChildProcess;
  const launch = async () => {
    server.prepare(undefined);
    const [command, ...args] = server.command;
    child = spawn(command, args, { env: server.env, cwd: server.cwd, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        output += chunk.toString();
      });
    }
    await answering(http, child, () => output);
  };
  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill(signal);
    await exited;
  };
  await launch();
  return {
    kind: server.kind,
    address,
    http,
    folder,
    tlsDir,
    auditFile: server.auditFile,
    pid: () => child.pid as number,
    restart: async (signal) => {
      await end(signal);
      await launch();
    },
    output: () => output,
    stop: async () => {
      await end("SIGKILL");
      await http.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** initVault makes the keys of an empty vault and opens it. */
export async function initVault(http: VaultHttp): Promise<{ unsealKey: string; rootToken: string }> {
  const { body } = await http.call("PUT", "sys/init", {
    body: { secret_shares: 1, secret_threshold: 1 },
    timeoutMs: SLOW_MS,
  });
  const unsealKey = (body.keys_base64 as [string])[0];
  await http.call("PUT", "sys/unseal", { body: { key: unsealKey }, timeoutMs: SLOW_MS });
  await becomesActive(http);
  return { unsealKey, rootToken: body.root_token as string };
}

/** becomesActive waits until an unsealed vault takes writes. */
export async function becomesActive(http: VaultHttp): Promise<void> {
  for (;;) {
    const { status } = await http.call("GET", "sys/health", { accept: [429, 472, 473, 503] });
    if (status === 200) return;
    await wait(20);
  }
}

/** A vault with Ganglion's configuration, shared by the tests that leave its state as it is. */
export interface SharedVault {
  readonly address: VaultAddress;
  readonly http: VaultHttp;
  readonly rootToken: string;
  readonly supervisorToken: string;
  /** Absent for a vault that runs elsewhere. */
  readonly auditFile: string | undefined;
  readonly kind: string;
}

let shared: Promise<SharedVault> | undefined;
let local: LocalVault | undefined;

/** sharedVault is the vault named by VAULT_ADDR and VAULT_TOKEN (which may do everything), or a local one. */
export function sharedVault(): Promise<SharedVault> {
  shared ??= makeShared();
  return shared;
}

// Benchmarks start vaults of their own, without mocha.
if (typeof after === "function") after(() => local?.stop());

async function makeShared(): Promise<SharedVault> {
  const { VAULT_ADDR: addr, VAULT_TOKEN: token, VAULT_CACERT: caFile } = process.env;
  if (addr && token) {
    const address = { addr, ...(caFile ? { caPem: readFileSync(caFile, "utf8") } : {}) };
    return {
      ...(await configured(new VaultHttp(address), token)),
      address,
      auditFile: undefined,
      kind: "external",
    };
  }
  local = await startVault();
  const { rootToken } = await initVault(local.http);
  const { address, auditFile, kind } = local;
  return { ...(await configured(local.http, rootToken)), address, auditFile, kind };
}

async function configured(http: VaultHttp, rootToken: string) {
  await configureVault(http, rootToken);
  await enableAudit(http, rootToken, AUDIT_FILE);
  return { http, rootToken, supervisorToken: await createSupervisorToken(http, rootToken) };
}

/** isRealVault tells whether the tests run against something else than the development vault. */
export function isRealVault(): boolean {
  const [named, token] = [process.env.VAULT_ADDR, process.env.VAULT_TOKEN];
  if (named && token) return true;
  const nothing = { dataDir: "", tlsDir: "", port: 0, checkout: "", node: "" };
  return chooseVault({ ...nothing, path: process.env.PATH ?? "" }).kind !== "dev-vault";
}

/** writeCertificates makes an authority and the certificate of a service; it returns the authority. */
export async function writeCertificates(folder: string, service = "vault"): Promise<string> {
  const authority = await createAuthority();
  const leaf = await issueCertificate(authority, { service, instance: service });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "ca.pem"), authority.certPem);
  writeFileSync(join(folder, "cert.pem"), leaf.certPem);
  writeFileSync(join(folder, "key.pem"), leaf.keyPem);
  chmodSync(join(folder, "key.pem"), 0o600);
  return authority.certPem;
}

async function answering(http: VaultHttp, child: ChildProcess, output: () => string): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the vault ended with ${child.exitCode}:\n${output()}`);
    try {
      await http.call("GET", "sys/seal-status");
      return;
    } catch {
      await wait(20);
    }
  }
}
