import type { AuditRecord } from "./audit-record.ts";
import type { Findings } from "./finding.ts";

interface OpenRequest {
  readonly sequence: string;
  readonly at: number;
  isDispatched: boolean;
}

/**
 * Follows requests through the log: an allowed decision, at most one dispatch, one outcome or recovery. What is still
 * open at the log's end counts once it is older, by the log's own clock, than a request may be.
 */
export class RequestCheck {
  readonly #open = new Map<string, OpenRequest>();
  readonly #findings: Findings;
  readonly #graceMs: number;
  #lastAt = 0;
  /** False where the log's beginning is missing: then its first requests may have begun before. */
  readonly #isFromStart: () => boolean;

  constructor(findings: Findings, graceMs: number, isFromStart: () => boolean) {
    this.#findings = findings;
    this.#graceMs = graceMs;
    this.#isFromStart = isFromStart;
  }

  /** Takes the next record. */
  add(record: AuditRecord): void {
    const at = Date.parse(record.created_at);
    if (at > this.#lastAt) this.#lastAt = at;
    const { kind, request_id: id, sequence } = record;
    if (id === "") return;
    const open = this.#open.get(id);
    if (kind === "decision") {
      if (open) this.#wrong(record, "is the second decision of its request");
      if (record.effect === "allow") this.#open.set(id, { sequence, at, isDispatched: false });
    } else if (kind === "dispatch") {
      if (!open && this.#isFromStart()) this.#wrong(record, "is a dispatch without an allowed decision");
      if (open?.isDispatched) this.#wrong(record, "is the second dispatch of its request");
      if (open) open.isDispatched = true;
    } else if (kind === "outcome" || kind === "recovery") {
      if (!open && this.#isFromStart()) this.#wrong(record, `is an ${kind} without an open request`);
      this.#open.delete(id);
    }
  }

  /** Judges what is left open. */
  end(): void {
    for (const [id, { sequence, at }] of this.#open) {
      if (this.#lastAt - at <= this.#graceMs) continue;
      this.#findings.add(
        "open_request",
        `record ${sequence}: request ${id} was allowed and never ended`,
        sequence,
      );
    }
  }

  #wrong({ sequence, request_id: id }: AuditRecord, what: string): void {
    this.#findings.add("open_request", `record ${sequence} ${what} (${id})`, sequence);
  }
}
