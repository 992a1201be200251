import { Counter, type Registry } from "prom-client";
import type { Ledger, LedgerRecord } from "../domain/ports.ts";

/** Counts what the log says, for alerts: denials and outcomes by operation and reason. */
export function countRecords(ledger: Ledger, registry: Registry): Ledger {
  const counter = new Counter({
    name: "ganglion_mcp_proxy_requests_total",
    help: "Requests denied or ended, by operation and reason as in the audit log",
    labelNames: ["operation", "effect", "reason"],
    registers: [registry],
  });
  const count = ({ kind, operation, effect, reason }: LedgerRecord) => {
    if (effect === "deny") counter.inc({ operation, effect, reason });
    else if (kind === "outcome") counter.inc({ operation, effect: "allow", reason });
  };
  return {
    write: async (record, guard) => {
      const refusal = await ledger.write(record, guard);
      if (refusal === undefined) count(record);
      return refusal;
    },
    writeTogether: (decision, guard, dispatch) => ledger.writeTogether(decision, guard, dispatch),
    writeAndClaim: (record, guard, claim) => ledger.writeAndClaim(record, guard, claim),
    writeClaimAndDispatch: (record, guard, claim, dispatch) =>
      ledger.writeClaimAndDispatch(record, guard, claim, dispatch),
    writeDispatch: (record, call) => ledger.writeDispatch(record, call),
    writeEnd: async (record, end) => {
      await ledger.writeEnd(record, end);
      count(record);
    },
  };
}
