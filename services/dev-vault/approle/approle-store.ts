import { createHmac, randomBytes, randomUUID } from "node:crypto";
import type { Store } from "../barrier/store.ts";

/** Approle says who may log in with a role id and a secret id, and what token that gives. */
export interface Approle {
  readonly name: string;
  readonly roleId: string;
  readonly bindsSecretId: boolean;
  readonly secretIdNumUses: number;
  readonly secretIdTtlMs: number;
  readonly tokenPolicies: readonly string[];
  readonly tokenTtlMs: number;
  readonly tokenMaxTtlMs: number;
  readonly tokenExplicitMaxTtlMs: number;
  readonly tokenPeriodMs: number;
  readonly tokenNumUses: number;
  readonly hasNoDefaultPolicy: boolean;
}

/** SecretId is a login's second half as stored: by keyed hash, never readable again. */
export interface SecretId {
  readonly role: string;
  readonly hash: string;
  readonly accessor: string;
  /** 0 is without limit. */
  readonly usesLeft: number;
  readonly ttlMs: number;
  readonly expiresAt: number | null;
  readonly createdAt: string;
  readonly metadata: Readonly<Record<string, string>>;
}

const SALT = "approle/salt";

/** ApproleStore keeps the roles and their secret ids. */
export class ApproleStore {
  readonly #store: Store;
  readonly #salt: Buffer;

  constructor(store: Store) {
    this.#store = store;
    const salt = store.get<string>(SALT) ?? randomBytes(32).toString("base64");
    if (!store.has(SALT)) store.put(SALT, salt);
    this.#salt = Buffer.from(salt, "base64");
  }

  list(): string[] {
    return this.#store.keys("approle/role/").map((key) => key.slice("approle/role/".length));
  }

  read(name: string): Approle | undefined {
    return this.#store.get<Approle>(`approle/role/${name}`);
  }

  findByRoleId(roleId: string): Approle | undefined {
    return this.list()
      .map((name) => this.read(name))
      .find((role) => role?.roleId === roleId);
  }

  write(role: Approle): void {
    this.#store.put(`approle/role/${role.name}`, role);
  }

  /** delete removes a role; its secret ids go first, so that none outlives it. */
  delete(name: string): void {
    for (const secretId of this.secretIds(name)) this.deleteSecretId(secretId);
    this.#store.delete(`approle/role/${name}`);
  }

  /** addSecretId makes a secret id; the returned value is readable only now. */
  addSecretId(
    role: Approle,
    metadata: Readonly<Record<string, string>>,
    numUses: number,
    ttlMs: number,
  ): { value: string; secretId: SecretId } {
    const value = randomUUID();
    const now = Date.now();
    const secretId: SecretId = {
      role: role.name,
      hash: this.#hash(value),
      accessor: randomUUID(),
      usesLeft: numUses,
      ttlMs,
      expiresAt: ttlMs > 0 ? now + ttlMs : null,
      createdAt: new Date(now).toISOString(),
      metadata,
    };
    this.#store.put(key(secretId), secretId);
    return { value, secretId };
  }

  /** secretIds lists the live secret ids of a role and removes those past their end. */
  secretIds(role: string): SecretId[] {
    const all = this.#store
      .keys(`approle/secret/${role}/`)
      .map((entry) => this.#store.get<SecretId>(entry) as SecretId);
    for (const secretId of all.filter(hasEnded)) this.deleteSecretId(secretId);
    return all.filter((secretId) => !hasEnded(secretId));
  }

  findSecretId(role: string, value: string): SecretId | undefined {
    const secretId = this.#store.get<SecretId>(`approle/secret/${role}/${this.#hash(value)}`);
    return secretId && !hasEnded(secretId) ? secretId : undefined;
  }

  deleteSecretId(secretId: SecretId): void {
    this.#store.delete(key(secretId));
  }

  /** useSecretId takes one use off; it is gone with its last. */
  useSecretId(secretId: SecretId): void {
    if (secretId.usesLeft === 1) this.deleteSecretId(secretId);
    else if (secretId.usesLeft > 1) {
      this.#store.put(key(secretId), { ...secretId, usesLeft: secretId.usesLeft - 1 });
    }
  }

  #hash(value: string): string {
    return createHmac("sha256", this.#salt).update(value).digest("hex");
  }
}

function key(secretId: SecretId): string {
  return `approle/secret/${secretId.role}/${secretId.hash}`;
}

function hasEnded(secretId: SecretId): boolean {
  return secretId.expiresAt !== null && secretId.expiresAt <= Date.now();
}
