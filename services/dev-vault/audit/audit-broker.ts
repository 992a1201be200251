import { randomBytes } from "node:crypto";
import type { Store } from "../barrier/store.ts";
import { badRequest, VaultError, wrapped } from "../core/vault-error.ts";
import { appendLine } from "./append-line.ts";
import { hashText } from "./hash-values.ts";

/** AuditDevice is a file that every request and answer is written to. */
export interface AuditDevice {
  /** With a slash at its end. */
  readonly path: string;
  readonly description: string;
  readonly options: Readonly<Record<string, string>>;
  readonly salt: string;
}

/** AuditBroker writes records to all devices; a request is refused unless at least one has it, if there are any. */
export class AuditBroker {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  list(): AuditDevice[] {
    return this.#store.keys("audit/").map((key) => this.#store.get<AuditDevice>(key) as AuditDevice);
  }

  /** enable adds a device after a first line could be written to it. */
  enable(path: string, description: string, options: Readonly<Record<string, string>>): void {
    if (this.#store.has(`audit/${path}`)) throw badRequest("path already in use");
    const device = { path, description, options, salt: randomBytes(32).toString("base64") };
    const line = JSON.stringify({
      time: new Date().toISOString(),
      type: "request",
      request: { path: "sys/audit/test" },
    });
    try {
      appendLine(options.file_path as string, line);
    } catch (cause) {
      throw badRequest(`sanity check failed; unable to write to the file: ${(cause as Error).message}`);
    }
    this.#store.put(`audit/${path}`, device);
  }

  disable(path: string): void {
    this.#store.delete(`audit/${path}`);
  }

  hash(path: string, value: string): string | undefined {
    const device = this.#store.get<AuditDevice>(`audit/${path}`);
    return device && hashText(device.salt, value);
  }

  /** record writes one record, made for each device with that device's salt, and throws when none took it. */
  record(make: (salt: string) => object): void {
    const devices = this.list();
    let written = 0;
    for (const device of devices) {
      try {
        appendLine(device.options.file_path as string, JSON.stringify(make(device.salt)));
        written += 1;
      } catch {
        // Another device may still take it; with none the request is refused below.
      }
    }
    if (devices.length > 0 && written === 0) throw new VaultError(500, wrapped("internal error"));
  }
}
