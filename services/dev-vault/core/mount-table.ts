import { randomBytes, randomUUID } from "node:crypto";
import type { Store } from "../barrier/store.ts";
import { badRequest } from "./vault-error.ts";

/** MountRecord says what answers below a path. */
export interface MountRecord {
  /** With a slash at its end; auth mounts without their `auth/`. */
  readonly path: string;
  readonly kind: "secret" | "auth";
  readonly type: string;
  readonly accessor: string;
  readonly uuid: string;
  readonly description: string;
  readonly options: Readonly<Record<string, string>> | null;
}

const BUILT_IN: readonly Pick<MountRecord, "path" | "kind" | "type" | "description">[] = [
  { path: "sys/", kind: "secret", type: "system", description: "system endpoints" },
  { path: "identity/", kind: "secret", type: "identity", description: "identity store" },
  { path: "token/", kind: "auth", type: "token", description: "token based credentials" },
];

/** MountTable keeps the mounts; the built-in ones are made on first use so that their accessors stay the same. */
export class MountTable {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
    for (const mount of BUILT_IN) {
      if (!store.has(key(mount.kind, mount.path))) this.#put({ ...mount, options: null });
    }
  }

  list(kind: MountRecord["kind"]): MountRecord[] {
    return this.#store
      .keys(`mount/${kind}/`)
      .map((entry) => this.#store.get<MountRecord>(entry) as MountRecord);
  }

  get(kind: MountRecord["kind"], path: string): MountRecord | undefined {
    return this.#store.get<MountRecord>(key(kind, path));
  }

  /** ofType finds the mount of a type of which there is one. */
  ofType(kind: MountRecord["kind"], type: string): MountRecord | undefined {
    return this.list(kind).find((mount) => mount.type === type);
  }

  findByAccessor(accessor: string): MountRecord | undefined {
    return [...this.list("auth"), ...this.list("secret")].find((mount) => mount.accessor === accessor);
  }

  add(mount: Pick<MountRecord, "path" | "kind" | "type" | "description" | "options">): void {
    const clash = this.list(mount.kind).find(
      (other) => other.path.startsWith(mount.path) || mount.path.startsWith(other.path),
    );
    if (clash) throw badRequest(`path is already in use at ${clash.path}`);
    this.#put(mount);
  }

  #put(mount: Pick<MountRecord, "path" | "kind" | "type" | "description" | "options">): void {
    const prefix = mount.kind === "auth" ? `auth_${mount.type}` : mount.type;
    const accessor = `${prefix}_${randomBytes(4).toString("hex")}`;
    this.#store.put(key(mount.kind, mount.path), { ...mount, accessor, uuid: randomUUID() });
  }
}

function key(kind: MountRecord["kind"], path: string): string {
  return `mount/${kind}/${path}`;
}
