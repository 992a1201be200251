import { createHmac } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { decrypt, encrypt } from "./cipher.ts";
import { removeDurably, writeDurably } from "./write-durably.ts";

/** Folder of the entries, below the data folder. */
export const OBJECTS_FOLDER = "objects";

/**
 * Store is a map of JSON values behind the barrier: in memory while unsealed, one encrypted file per entry on
 * disk. File names are keyed hashes, so that the data folder tells neither keys nor values. Everything that must
 * change together is one entry, since one entry is what a write makes durable at once.
 */
export class Store {
  readonly #folder: string;
  readonly #key: Buffer;
  readonly #nameKey: Buffer;
  readonly #entries = new Map<string, string>();

  constructor(dataDir: string, barrierKey: Buffer) {
    this.#folder = join(dataDir, OBJECTS_FOLDER);
    this.#key = barrierKey;
    this.#nameKey = createHmac("sha256", barrierKey).update("file names").digest();
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(this.#folder)) this.#load(name);
  }

  get<T>(key: string): T | undefined {
    const json = this.#entries.get(key);
    // Parsed anew for each reader: nobody can change an entry without writing it.
    return json === undefined ? undefined : (JSON.parse(json) as T);
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  put(key: string, value: unknown): void {
    const json = JSON.stringify(value);
    const name = this.#fileName(key);
    const plain = Buffer.from(JSON.stringify({ key, value }));
    writeDurably(join(this.#folder, name), encrypt(this.#key, plain, name));
    this.#entries.set(key, json);
  }

  delete(key: string): void {
    if (!this.#entries.has(key)) return;
    const path = join(this.#folder, this.#fileName(key));
    if (existsSync(path)) removeDurably(path);
    this.#entries.delete(key);
  }

  /** keys lists the keys that begin with a prefix, sorted. */
  keys(prefix: string): string[] {
    return [...this.#entries.keys()].filter((key) => key.startsWith(prefix)).sort();
  }

  /** close forgets everything that was decrypted. */
  close(): void {
    this.#entries.clear();
    this.#key.fill(0);
    this.#nameKey.fill(0);
  }

  #load(name: string): void {
    const path = join(this.#folder, name);
    if (name.endsWith(".tmp")) {
      // A write that a crash cut short; the old content, if any, is under the real name.
      rmSync(path);
      return;
    }
    const plain = decrypt(this.#key, readFileSync(path), name);
    const { key, value } = JSON.parse(plain.toString("utf8")) as { key: string; value: unknown };
    this.#entries.set(key, JSON.stringify(value));
  }

  #fileName(key: string): string {
    return createHmac("sha256", this.#nameKey).update(key).digest("hex");
  }
}
