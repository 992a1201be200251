import type { AuditRecord } from "./audit-record.ts";
import type { Findings } from "./finding.ts";

/** A look into a vault, as Vault's log has it. */
interface Look {
  readonly id: string;
  readonly at: string;
  readonly vaultId: string;
  readonly what: string;
}

/** An entry of Vault's log, as far as it tells who looked where. */
interface VaultEntry {
  readonly time?: string;
  readonly error?: string;
  readonly request?: { readonly id?: string; readonly operation?: string; readonly path?: string };
}

/**
 * Finds who looked at decoys at Vault itself. mcp-proxy reads none, so every look is somebody else's; one that Vault refused says
 * as much as one that it answered. Which vaults are decoys, the log's honeytoken records tell.
 */
export class DecoyCheck {
  readonly #findings: Findings;
  readonly #path: RegExp;
  /** By the id of Vault's request. */
  readonly #looks = new Map<string, Look>();
  readonly #decoys = new Set<string>();

  /** `mount` is a pattern. */
  constructor(mount: string, findings: Findings) {
    this.#findings = findings;
    this.#path = new RegExp(`^${mount}/(?:data|metadata|subkeys)/vaults/([^/]+)(?:/([^/]*))?$`);
  }

  /** Takes an entry of Vault's log. */
  take({ time = "", error, request = {} }: VaultEntry): void {
    const { id, operation = "", path = "" } = request;
    if (typeof id !== "string" || (operation !== "read" && operation !== "list")) return;
    const [, vaultId, credentialId] = this.#path.exec(path) ?? [];
    if (vaultId === undefined) return;
    const named = credentialId ? `credential ${credentialId} in ` : "";
    const what = `${operation} ${named}decoy ${vaultId}${error ? ", which Vault refused" : ""}`;
    this.#looks.set(id, { id, at: time, vaultId, what });
  }

  /** Takes the next record of the log. */
  add({ kind, reason, target }: AuditRecord): void {
    if (kind === "honeytoken" && reason === "planted") this.#decoys.add(target);
  }

  /** True for a vault that the records so far call a decoy. */
  isDecoy(vaultId: string): boolean {
    return this.#decoys.has(vaultId);
  }

  /** Both logs are over. */
  end(): void {
    for (const { id, at, vaultId, what } of this.#looks.values()) {
      if (!this.#decoys.has(vaultId)) continue;
      this.#findings.add("honeytoken", `Vault's request ${id} at ${at} was to ${what}`);
    }
  }
}
