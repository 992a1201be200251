import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { readKeyShare, type Seal } from "../barrier/seal.ts";
import { OBJECTS_FOLDER, Store } from "../barrier/store.ts";
import { type Answer, carryOut } from "./pipeline.ts";
import type { VaultRequest } from "./request.ts";
import { RouteTable } from "./route-table.ts";
import { badRequest, VaultError } from "./vault-error.ts";
import { openState, type VaultState } from "./vault-state.ts";

/** Vault is the whole server without HTTP: sealed until the unseal key is given, and again after a restart. */
export class Vault {
  readonly #dataDir: string;
  readonly #seal: Seal;
  #open: { state: VaultState; table: RouteTable } | undefined;
  #isSealAsked = false;

  constructor(dataDir: string, seal: Seal) {
    this.#dataDir = dataDir;
    this.#seal = seal;
  }

  get isInitialized(): boolean {
    return this.#seal.isInitialized();
  }

  get isSealed(): boolean {
    return this.#open === undefined;
  }

  /** clusterId names this vault's data; only an initialized vault has one. */
  get clusterId(): string {
    return this.#seal.clusterId();
  }

  /** initialize makes the keys and the first root token; the vault stays sealed, as Vault does. */
  initialize(): { unsealKey: Buffer; rootToken: string } {
    if (this.isInitialized) throw badRequest("Vault is already initialized");
    const { unsealKey, barrierKey, keep } = this.#seal.makeKeys();
    // What an attempt that was cut short left behind was written with keys that nobody has.
    rmSync(join(this.#dataDir, OBJECTS_FOLDER), { recursive: true, force: true });
    const store = new Store(this.#dataDir, barrierKey);
    const rootToken = createRootToken(openState(store));
    keep();
    store.close();
    return { unsealKey, rootToken };
  }

  /** unseal opens the vault; a wrong key is refused with Vault's words. */
  unseal(share: string): void {
    if (!this.isInitialized) throw badRequest("Vault is not initialized");
    if (this.#open) return;
    const store = new Store(this.#dataDir, this.#barrierKey(share));
    const state = openState(store);
    this.#open = { state, table: new RouteTable(state, () => (this.#isSealAsked = true)) };
  }

  /** createRoot makes a root token for who holds the unseal key. */
  createRoot(share: string): string {
    if (!this.#open) throw new VaultError(503, "Vault is sealed");
    this.#barrierKey(share).fill(0);
    return createRootToken(this.#open.state);
  }

  /** seal forgets every key and everything that was decrypted. */
  seal(): void {
    this.#open?.state.store.close();
    this.#open = undefined;
    this.#isSealAsked = false;
  }

  /** sweep removes what has ended. */
  sweep(): void {
    this.#open?.state.tokens.sweep();
  }

  /** handle carries out one request. */
  handle(request: Omit<VaultRequest, "id">): Answer {
    if (!this.#open) throw new VaultError(503, "Vault is sealed");
    const { state, table } = this.#open;
    try {
      return carryOut(state, table, { ...request, id: randomUUID() });
    } finally {
      if (this.#isSealAsked) this.seal();
    }
  }

  #barrierKey(share: string): Buffer {
    const key = this.#seal.open(readKeyShare(share));
    if (!key)
      throw badRequest(
        "invalid key: failed to decrypt keys from storage: cipher: message authentication failed",
      );
    return key;
  }
}

function createRootToken(state: VaultState): string {
  const { token } = state.tokens.create({
    policies: ["root"],
    path: "auth/token/root",
    metadata: null,
    displayName: "root",
    entityId: "",
    isRenewable: false,
    usesLeft: 0,
    ttlMs: 0,
    expiresAt: null,
    periodMs: 0,
    explicitMaxTtlMs: 0,
    lastMomentAt: null,
  });
  return token;
}
