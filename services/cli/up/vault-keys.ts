import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";

/** VaultKeys is what the supervisor keeps of a vault that it started itself, in a file of mode 0600. */
export interface VaultKeys {
  readonly unsealKey: string;
  /** Only until the first configuration is done; then it is revoked and forgotten. */
  readonly rootToken?: string;
  readonly supervisorToken?: string;
  /** Digest of the configuration that was written last. */
  readonly configuration?: string;
}

/** readVaultKeys reads the file; undefined where there is none. */
export function readVaultKeys(path: string): VaultKeys | undefined {
  if (!existsSync(path)) return undefined;
  try {
    return JSON.parse(readFileSync(path, "utf8")) as VaultKeys;
  } catch {
    // The parser's message would quote the file.
    throw new Error(`${path} is not readable as JSON`);
  }
}

/** writeVaultKeys replaces the file so that it survives a power cut: without the unseal key all credentials are lost. */
export function writeVaultKeys(path: string, keys: VaultKeys): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}.partial`;
  const file = openSync(draft, "w", 0o600);
  try {
    writeSync(file, JSON.stringify(keys));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(draft, path);
  const folder = openSync(dirname(path), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
