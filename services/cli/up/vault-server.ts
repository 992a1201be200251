import { accessSync, chownSync, constants, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import { replaceFile } from "./mesh-files.ts";
import type { SystemUser } from "./system-user.ts";

/** What chooseVault decides from. */
export interface VaultServerOptions {
  /** Folder of the vault's own data. */
  readonly dataDir: string;
  /** Folder with ca.pem, cert.pem and key.pem. */
  readonly tlsDir: string;
  readonly port: number;
  /** PATH to search for `vault` and `bao`; empty to search nowhere. */
  readonly path: string;
  /** Checkout and Node program for the development vault. */
  readonly checkout: string;
  readonly node: string;
}

/** Audit file as the server is told of it, relative to its working directory. */
export const AUDIT_FILE = "audit.log";

/** How to start a vault. */
export interface VaultServer {
  readonly kind: "vault" | "bao" | "dev-vault";
  readonly addr: string;
  readonly command: readonly [string, ...string[]];
  readonly env: Record<string, string>;
  /** Working directory: the audit file's path is relative, so that the state folder can be moved. */
  readonly cwd: string;
  readonly auditFile: string;
  /** Makes it read a renewed certificate; the development vault looks by itself. */
  readonly reloadSignal: "SIGHUP" | undefined;
  /** Makes folders and files, owned by the user that the server runs as. Call it before each start. */
  prepare(user: SystemUser | undefined): void;
}

const FOLDERS = { vault: "vault", bao: "bao", "dev-vault": "dev" } as const;

/**
 * chooseVault picks the server to start: the one that has the credentials of this state folder, else a `vault` or
 * `bao` program where there is one, else the development vault.
 */
export function chooseVault(options: VaultServerOptions): VaultServer {
  const kinds = ["vault", "bao", "dev-vault"] as const;
  const used = kinds.find((kind) => hasFiles(join(options.dataDir, FOLDERS[kind])));
  if (used === "dev-vault") return developmentServer(options);
  for (const kind of used ? [used] : (["vault", "bao"] as const)) {
    const program = findProgram(kind, options.path);
    if (program) return realServer(kind, program, options);
  }
  // Another server would start empty, and its keys would take the place of those that open the old one.
  if (used)
    throw new Error(`the credentials of this state folder are in a "${used}", which is not on this machine`);
  return developmentServer(options);
}

function hasFiles(folder: string): boolean {
  return existsSync(folder) && readdirSync(folder).length > 0;
}

function developmentServer(options: VaultServerOptions): VaultServer {
  const data = join(options.dataDir, FOLDERS["dev-vault"]);
  return {
    kind: "dev-vault",
    addr: `https://127.0.0.1:${options.port}`,
    command: [options.node, join(options.checkout, "services/dev-vault/main.ts")],
    env: {
      GANGLION_INSTANCE: "vault",
      GANGLION_LISTEN: `127.0.0.1:${options.port}`,
      GANGLION_TLS_DIR: options.tlsDir,
      GANGLION_DATA_DIR: data,
    },
    cwd: options.dataDir,
    auditFile: join(options.dataDir, AUDIT_FILE),
    reloadSignal: undefined,
    prepare: (user) => {
      makeOwned(options.dataDir, user);
      makeOwned(data, user);
    },
  };
}

function realServer(kind: "vault" | "bao", program: string, options: VaultServerOptions): VaultServer {
  const data = join(options.dataDir, FOLDERS[kind]);
  const file = join(options.dataDir, `${kind}.hcl`);
  return {
    kind,
    addr: `https://127.0.0.1:${options.port}`,
    command: [program, "server", `-config=${file}`],
    // Neither VAULT_* nor proxies of the caller's: the file says everything.
    env: { PATH: "/usr/bin:/bin", HOME: options.dataDir },
    cwd: options.dataDir,
    auditFile: join(options.dataDir, AUDIT_FILE),
    reloadSignal: "SIGHUP",
    prepare: (user) => {
      makeOwned(options.dataDir, user);
      makeOwned(data, user);
      replaceFile(file, serverConfig(kind, data, options));
      if (user) chownSync(file, user.uid, user.gid);
    },
  };
}

function serverConfig(kind: "vault" | "bao", data: string, options: VaultServerOptions): string {
  const { tlsDir, port } = options;
  const lines = [
    `storage "raft" {`,
    `  path    = ${JSON.stringify(data)}`,
    `  node_id = "ganglion"`,
    `}`,
    `listener "tcp" {`,
    `  address         = "127.0.0.1:${port}"`,
    // A server that is alone needs no fixed port for its peers.
    `  cluster_address = "127.0.0.1:0"`,
    `  tls_cert_file   = ${JSON.stringify(join(tlsDir, "cert.pem"))}`,
    `  tls_key_file    = ${JSON.stringify(join(tlsDir, "key.pem"))}`,
    `  tls_min_version = "tls13"`,
    `}`,
    `api_addr     = "https://127.0.0.1:${port}"`,
    // Must be given and must differ from the other; nobody ever calls it.
    `cluster_addr = "https://127.0.0.1:1"`,
    `ui           = false`,
    // OpenBao takes audit devices from here only, Vault over its API only. Vault needs a capability to lock memory.
    kind === "bao"
      ? `audit "file" "ganglion" {\n  options {\n    file_path = "${AUDIT_FILE}"\n  }\n}`
      : `disable_mlock = true`,
  ];
  return `${lines.join("\n")}\n`;
}

function findProgram(name: string, path: string): string | undefined {
  for (const folder of path.split(delimiter).filter(isAbsolute)) {
    const program = join(folder, name);
    try {
      accessSync(program, constants.X_OK);
      if (statSync(program).isFile()) return program;
    } catch {
      // Not in this folder.
    }
  }
  return undefined;
}

function makeOwned(folder: string, user: SystemUser | undefined): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (user) chownSync(folder, user.uid, user.gid);
}
