import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { ProcessRecord } from "./process-record.ts";

/** The checkout this program runs from. */
export const CHECKOUT = resolve(dirname(fileURLToPath(import.meta.url)), "../../..");

/** What `up` remembers of a mesh, in state/mesh.json. */
export interface MeshRecord {
  /** Supervisor; absent when it was stopped. */
  supervisor?: ProcessRecord;
  /** Running processes by instance. */
  processes: Record<string, ProcessRecord>;
  /** Ports by name; kept from one start to the next. */
  ports: Record<string, number>;
  /** True when a scripted stand-in answers instead of a model. */
  scriptedModel: boolean;
}

/** Places below a state folder. The folder is seen under two paths: by people and, as root, by the services. */
export interface MeshFiles {
  readonly state: string;
  readonly clientEnv: string;
  readonly mesh: string;
  readonly socket: string;
  readonly lock: string;
  readonly tls: string;
  readonly logs: string;
}

/** meshFiles names the places below a state folder. */
export function meshFiles(state: string): MeshFiles {
  return {
    state,
    clientEnv: join(state, "client.env"),
    mesh: join(state, "mesh.json"),
    socket: join(state, "supervisor.sock"),
    lock: join(state, "supervisor.lock"),
    tls: join(state, "tls"),
    logs: join(state, "logs"),
  };
}

/** meshId names a state folder in places that all meshes of the machine share. */
export function meshId(state: string): string {
  return createHash("sha256").update(state).digest("hex").slice(0, 12);
}

/** readMesh returns what was remembered; empty where there is nothing or nothing usable. */
export function readMesh(files: MeshFiles): MeshRecord {
  const empty: MeshRecord = { processes: {}, ports: {}, scriptedModel: false };
  try {
    return { ...empty, ...(JSON.parse(readFileSync(files.mesh, "utf8")) as Partial<MeshRecord>) };
  } catch {
    return empty;
  }
}

/** writeMesh replaces what is remembered. */
export function writeMesh(files: MeshFiles, record: MeshRecord): void {
  replaceFile(files.mesh, `${JSON.stringify(record, null, 2)}\n`);
}

/** replaceFile writes a file of its own mode 0600 and puts it in place at once, whole or not at all. */
export function replaceFile(path: string, content: string): void {
  const partial = `${path}.${process.pid}.partial`;
  writeFileSync(partial, content, { mode: 0o600 });
  chmodSync(partial, 0o600);
  renameSync(partial, path);
}

/** makeFolder makes a folder and gives it its mode also when it was there. */
export function makeFolder(path: string, mode: number): void {
  mkdirSync(path, { recursive: true, mode });
  chmodSync(path, mode);
}
