import { type AuditRecord, isChange } from "./audit-record.ts";
import { DecoyCheck } from "./check-decoys.ts";
import { SKEW_MS, VaultWriteCheck } from "./check-vault-writes.ts";
import type { Findings } from "./finding.ts";

interface VaultRead {
  readonly at: number;
  readonly vaultId: string;
  readonly credentialId: string;
  /** From the metadata of the token that read; empty when it had none. */
  readonly sessionId: string;
  /** Some record names it. */
  isNamed: boolean;
}

interface Interval {
  readonly sessionId: string;
  readonly from: number;
  readonly to: number;
}

/**
 * Reconciles the log with Vault's own: each credential that Vault gave out is named by a record, each that it wrote or removed
 * is told by one, and each record that names a request of Vault's is true. Only where both logs have been.
 */
export class VaultAuditCheck {
  readonly #findings: Findings;
  /** By the id of Vault's request. */
  readonly #reads = new Map<string, VaultRead>();
  /** Requests that a crash cut off: their reads are known by credential, session and time only. */
  readonly #cutOff = new Map<string, Interval[]>();
  readonly #open = new Map<string, AuditRecord>();
  readonly #writes: VaultWriteCheck;
  readonly #decoys: DecoyCheck;
  #vaultFrom = Number.POSITIVE_INFINITY;
  #vaultTo = 0;
  #logFrom = Number.POSITIVE_INFINITY;
  #logTo = 0;
  #bad = 0;

  constructor(lines: Iterable<string>, mount: string, findings: Findings) {
    this.#findings = findings;
    this.#writes = new VaultWriteCheck(findings);
    this.#decoys = new DecoyCheck(literally(mount), findings);
    const path = new RegExp(`^${literally(mount)}/(data|metadata|destroy)/vaults/([^/]+)/([^/]+)$`);
    for (const line of lines) this.#takeVaultLine(line, path);
  }

  /** Takes the next record of the log. */
  add(record: AuditRecord): void {
    const at = Date.parse(record.created_at);
    this.#logFrom = Math.min(this.#logFrom, at);
    this.#logTo = Math.max(this.#logTo, at);
    const { kind, request_id: id, credential_id: credentialId } = record;
    this.#decoys.add(record);
    this.#writes.add(record, at, (from, to) => this.#isCovered(from, to));
    // A change reads nothing, so it accounts for no read either.
    if (isChange(record)) return;
    if (kind === "decision" && record.effect === "allow" && credentialId !== "") this.#open.set(id, record);
    const decision = this.#open.get(id) ?? record;
    if (kind === "recovery") this.#cut(record, at);
    if (kind === "outcome" || kind === "recovery") this.#open.delete(id);
    if (record.vault_request_id !== "") this.#compare(record, Date.parse(decision.created_at), at);
  }

  /** Both logs are over. */
  end(): { reads: number } {
    for (const record of this.#open.values()) this.#cut(record, this.#logTo);
    // A decision is durable before its read: whatever was read before the log's end has one in it.
    for (const [id, { at, vaultId, credentialId, sessionId, isNamed }] of this.#reads) {
      // Of a decoy it is told below, whenever it was.
      if (isNamed || this.#decoys.isDecoy(vaultId) || at < this.#logFrom - SKEW_MS || at > this.#logTo)
        continue;
      const cutOff = this.#cutOff.get(credentialId) ?? [];
      const isCutOff = cutOff.some(
        (cut) => cut.sessionId === sessionId && at >= cut.from - SKEW_MS && at <= cut.to + SKEW_MS,
      );
      if (!isCutOff) {
        const whose = sessionId === "" ? "by a token of no session" : `for session ${sessionId}`;
        this.#findings.add(
          "vault",
          `Vault's request ${id} read credential ${credentialId} ${whose}; no record names it`,
        );
      }
    }
    this.#writes.end(this.#logFrom, this.#logTo);
    this.#decoys.end();
    if (this.#bad > 0) this.#findings.add("vault", `${this.#bad} lines of Vault's log cannot be read`);
    return { reads: this.#reads.size };
  }

  /** `begun` is when the request was allowed: a record of its end may be long after its read. */
  #compare(record: AuditRecord, begun: number, at: number): void {
    const wrong = (why: string) =>
      this.#findings.add("vault", `record ${record.sequence} ${why}`, record.sequence);
    const read = this.#reads.get(record.vault_request_id);
    if (!read) {
      if (this.#isCovered(begun, at)) wrong("names a request that Vault does not know");
      return;
    }
    read.isNamed = true;
    if (read.credentialId !== record.credential_id) wrong("names a request that read another credential");
    else if (read.sessionId !== "" && read.sessionId !== record.session_id) {
      wrong("names a request that was made for another session");
    }
  }

  /** Vault's file may begin after a request, or end before it. */
  #isCovered(begun: number, at: number): boolean {
    return begun >= this.#vaultFrom && at <= this.#vaultTo + SKEW_MS;
  }

  #cut({ request_id: id, session_id: sessionId }: AuditRecord, to: number): void {
    const decision = this.#open.get(id);
    if (!decision) return;
    const known = this.#cutOff.get(decision.credential_id) ?? [];
    const cut = { sessionId, from: Date.parse(decision.created_at), to };
    this.#cutOff.set(decision.credential_id, [...known, cut]);
  }

  #takeVaultLine(line: string, path: RegExp): void {
    if (line === "") return;
    let entry: VaultLine | null;
    try {
      entry = JSON.parse(line) as VaultLine | null;
    } catch {
      this.#bad += 1;
      return;
    }
    const at = Date.parse(entry?.time ?? "");
    if (Number.isNaN(at)) return;
    this.#vaultFrom = Math.min(this.#vaultFrom, at);
    this.#vaultTo = Math.max(this.#vaultTo, at);
    this.#decoys.take(entry ?? {});
    const { request, auth } = entry ?? {};
    const [, area = "", vaultId = "", credentialId] = path.exec(request?.path ?? "") ?? [];
    const { id, operation = "" } = request ?? {};
    if (!credentialId || typeof id !== "string" || entry?.type !== "response" || entry.error) return;
    this.#writes.take(id, { at, area, operation, vaultId, credentialId });
    // A read of nothing gave nothing out, and of a deleted version only what is known about it.
    const given = entry?.response?.data;
    const gaveOut = given !== undefined && given !== null && given.data !== null;
    if (area !== "data" || operation !== "read" || !gaveOut) return;
    const sessionId = auth?.metadata?.session_id ?? "";
    this.#reads.set(id, { at, vaultId, credentialId, sessionId, isNamed: false });
  }
}

/** What is read of a line of Vault's audit file. */
interface VaultLine {
  type?: string;
  time?: string;
  error?: string;
  auth?: { metadata?: { session_id?: string } | null };
  request?: { id?: string; operation?: string; path?: string };
  response?: { data?: { data?: unknown } | null };
}

function literally(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
