import { type AuditRecord, isChange } from "./audit-record.ts";
import type { Findings } from "./finding.ts";

/** A request of Vault's that changed what is kept for a credential. */
interface VaultChange {
  readonly at: number;
  readonly vaultId: string;
  readonly credentialId: string;
  /** A secret was written; else one, or a version of it, was removed. */
  readonly isWrite: boolean;
  isNamed: boolean;
}

/** When a request of ours may have changed something at Vault without naming Vault's request. */
interface Interval {
  readonly from: number;
  readonly to: number;
  readonly coversWrites: boolean;
}

/** Clocks of Vault and database may differ by so much before an end of one log counts as inside the other. */
export const SKEW_MS = 5000;
/** What was given up here Vault may still do, once it goes on. */
const LATE_MS = 300_000;
/** Renewals store what they were given; Vault's log names the request, ours the renewal. */
const RENEWAL = "oauth.refresh";
const WRITES = new Set(["create", "update", "patch"]);

/**
 * Reconciles changes of credentials with Vault's own log: a record that names a request of Vault's names one that wrote that
 * credential, and what Vault wrote or removed is told by a record. Vault answers a removal without an id, and a request that
 * failed or was cut off knows none: those are known by credential and time.
 */
export class VaultWriteCheck {
  readonly #findings: Findings;
  /** By the id of Vault's request. */
  readonly #changes = new Map<string, VaultChange>();
  /** When requests that are open were allowed, and for which credential. */
  readonly #open = new Map<string, { credentialId: string; from: number }>();
  /** By credential. */
  readonly #told = new Map<string, Interval[]>();

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** Takes an answered request about a credential from Vault's log; `area` is what follows the mount in its path. */
  take(
    id: string,
    asked: { at: number; area: string; operation: string; vaultId: string; credentialId: string },
  ): void {
    const { at, area, operation, vaultId, credentialId } = asked;
    const isWrite = area === "data" && WRITES.has(operation);
    const isRemoval = operation === "delete" || (area === "destroy" && WRITES.has(operation));
    if (isWrite || isRemoval) this.#changes.set(id, { at, vaultId, credentialId, isWrite, isNamed: false });
  }

  /** Takes the next record of the log; `isCovered` says whether Vault's log has been there from one time to another. */
  add(record: AuditRecord, at: number, isCovered: (from: number, to: number) => boolean): void {
    const { kind, effect, request_id: id, credential_id: credentialId, reason } = record;
    const isRenewal = record.operation === RENEWAL;
    if (credentialId === "" || !(isRenewal || isChange(record))) return;
    if (kind === "decision" && effect === "allow") this.#open.set(id, { credentialId, from: at });
    if (kind !== "outcome" && kind !== "recovery") return;
    const from = this.#open.get(id)?.from ?? at;
    this.#open.delete(id);
    if (isRenewal) {
      // Whoever takes a renewal over that was cut off stores its answer whenever that is needed.
      const to = kind === "recovery" ? Number.POSITIVE_INFINITY : at + LATE_MS;
      this.#tell(credentialId, { from, to, coversWrites: true });
      return;
    }
    const isNamed = record.vault_request_id !== "";
    if (isNamed) this.#compare(record, isCovered(from, at));
    const isDone = kind === "outcome" && (isNamed || reason === "ok" || reason === "removed_later");
    this.#tell(credentialId, { from, to: at + (isDone ? SKEW_MS : LATE_MS), coversWrites: !isDone });
  }

  /** Both logs are over; ours is from `logFrom` to `logTo`. */
  end(logFrom: number, logTo: number): void {
    for (const { credentialId, from } of this.#open.values()) {
      this.#tell(credentialId, { from, to: Number.POSITIVE_INFINITY, coversWrites: true });
    }
    for (const [id, { at, credentialId, isWrite, isNamed }] of this.#changes) {
      if (isNamed || at < logFrom - SKEW_MS || at > logTo) continue;
      const isTold = this.#told
        .get(credentialId)
        ?.some((told) => at >= told.from - SKEW_MS && at <= told.to && (told.coversWrites || !isWrite));
      if (isTold) continue;
      const what = isWrite ? "wrote" : "removed";
      this.#findings.add(
        "vault",
        `Vault's request ${id} ${what} credential ${credentialId}; no record tells of it`,
      );
    }
  }

  #compare(record: AuditRecord, isCovered: boolean): void {
    const wrong = (why: string) =>
      this.#findings.add("vault", `record ${record.sequence} ${why}`, record.sequence);
    const change = this.#changes.get(record.vault_request_id);
    if (!change?.isWrite) {
      if (change || isCovered) wrong("names a request of which Vault's log knows no write");
      return;
    }
    change.isNamed = true;
    if (change.credentialId !== record.credential_id || change.vaultId !== record.target) {
      wrong("names a request that wrote another credential");
    }
  }

  #tell(credentialId: string, interval: Interval): void {
    this.#told.set(credentialId, [...(this.#told.get(credentialId) ?? []), interval]);
  }
}
