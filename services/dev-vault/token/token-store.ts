import { createHmac, randomBytes } from "node:crypto";
import type { Store } from "../barrier/store.ts";
import { randomText } from "./random-text.ts";
import type { TokenEntry } from "./token-entry.ts";

const PREFIX = "token/id/";
const SALT = "token/salt";

/** NewToken is what the maker of a token decides; the rest follows. */
export type NewToken = Omit<TokenEntry, "hash" | "accessor" | "createdAt">;

/** TokenStore keeps the live tokens; a token dies with its parent, at its end, with its last use, or by revocation. */
export class TokenStore {
  readonly #store: Store;
  readonly #salt: Buffer;
  readonly #byAccessor = new Map<string, string>();
  readonly #children = new Map<string, Set<string>>();

  constructor(store: Store) {
    this.#store = store;
    const salt = store.get<string>(SALT) ?? randomBytes(32).toString("base64");
    if (!store.has(SALT)) store.put(SALT, salt);
    this.#salt = Buffer.from(salt, "base64");
    for (const key of store.keys(PREFIX)) this.#index(store.get<TokenEntry>(key) as TokenEntry);
  }

  /** create makes and stores a token; this is the only moment at which it is readable. */
  create(fields: NewToken): { token: string; entry: TokenEntry } {
    const token = `hvs.${randomText(32)}`;
    const entry: TokenEntry = {
      ...fields,
      hash: this.hash(token),
      accessor: randomText(24),
      createdAt: Date.now(),
    };
    this.#store.put(PREFIX + entry.hash, entry);
    this.#index(entry);
    return { token, entry };
  }

  /** find gives the live token's entry. */
  find(token: string): TokenEntry | undefined {
    return this.#live(this.hash(token));
  }

  findByAccessor(accessor: string): TokenEntry | undefined {
    const hash = this.#byAccessor.get(accessor);
    return hash === undefined ? undefined : this.#live(hash);
  }

  accessors(): string[] {
    return [...this.#byAccessor.keys()].filter((accessor) => this.findByAccessor(accessor));
  }

  update(entry: TokenEntry): void {
    this.#store.put(PREFIX + entry.hash, entry);
  }

  /** revoke ends a token and everything that was made with it. Children go first: a crash in between leaves no orphan alive. */
  revoke(hash: string): void {
    for (const child of [...(this.#children.get(hash) ?? [])]) this.revoke(child);
    this.#forget(hash);
  }

  /** revokeOrphan ends a token and lets its children live on without a parent. */
  revokeOrphan(hash: string): void {
    for (const child of [...(this.#children.get(hash) ?? [])]) {
      const entry = this.#store.get<TokenEntry>(PREFIX + child);
      if (!entry) continue;
      const { parent: _parent, ...orphan } = entry;
      this.#store.put(PREFIX + child, orphan);
    }
    this.#children.delete(hash);
    this.#forget(hash);
  }

  /** sweep removes the tokens that have ended, with their children. */
  sweep(): void {
    for (const key of this.#store.keys(PREFIX)) {
      const entry = this.#store.get<TokenEntry>(key);
      if (entry && hasEnded(entry)) this.revoke(entry.hash);
    }
  }

  hash(token: string): string {
    return createHmac("sha256", this.#salt).update(token).digest("hex");
  }

  #live(hash: string): TokenEntry | undefined {
    const entry = this.#store.get<TokenEntry>(PREFIX + hash);
    if (!entry || hasEnded(entry)) return undefined;
    // A parent that ended takes this one along, also when nobody has swept yet.
    if (entry.parent !== undefined && !this.#live(entry.parent)) return undefined;
    return entry;
  }

  #forget(hash: string): void {
    const entry = this.#store.get<TokenEntry>(PREFIX + hash);
    this.#store.delete(PREFIX + hash);
    if (!entry) return;
    this.#byAccessor.delete(entry.accessor);
    this.#children.delete(hash);
    if (entry.parent !== undefined) this.#children.get(entry.parent)?.delete(hash);
  }

  #index(entry: TokenEntry): void {
    this.#byAccessor.set(entry.accessor, entry.hash);
    if (entry.parent === undefined) return;
    const siblings = this.#children.get(entry.parent) ?? new Set();
    this.#children.set(entry.parent, siblings.add(entry.hash));
  }
}

function hasEnded(entry: TokenEntry): boolean {
  return entry.expiresAt !== null && entry.expiresAt <= Date.now();
}
