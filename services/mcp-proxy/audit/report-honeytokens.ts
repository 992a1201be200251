import { Counter, type Registry } from "prom-client";
import type { Logger } from "../../common/log/create-logger.ts";
import type { Ledger } from "../domain/ports.ts";

/**
 * Raises the alarm for each use of a decoy, also for one that the audit log does not take. The counter has no labels, so that it
 * is there with 0 before the first use: an alert on its increase misses none.
 */
export function reportHoneytokens(ledger: Ledger, registry: Registry, log: Logger): Ledger {
  const uses = new Counter({
    name: "ganglion_mcp_proxy_honeytoken_uses_total",
    help: "Attempts to use a decoy vault or credential; each is an intruder, or somebody who has to be asked",
    registers: [registry],
  });
  return {
    ...ledger,
    write: (record, guard) => {
      if (record.kind === "honeytoken" && record.reason === "used") {
        uses.inc();
        const { caller, operation, target: vault_id, credential_id, session_id, request_id } = record;
        log.error(
          { caller, operation, vault_id, credential_id, session_id, request_id },
          "somebody reached for a decoy",
        );
      }
      return ledger.write(record, guard);
    },
  };
}
