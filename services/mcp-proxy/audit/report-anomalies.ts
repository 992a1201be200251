import type { CallContext } from "../../common/grpc/call-context.ts";
import type { AnyHandler, Definition, Implementation } from "../../common/grpc/handlers.ts";
import { McpProxyServiceService } from "../../gen/ganglion/mcpproxy/v1/mcp_proxy_service.ts";
import { blankRecord, callerColumns } from "../domain/new-record.ts";
import type { Ledger, LedgerRecord } from "../domain/ports.ts";
import { reasonOf } from "../domain/proxy-error.ts";

const TAMPERED = "ROW_TAMPERED";

/** Writes an anomaly beside the denial of a request that met a row which somebody changed. */
export function reportAnomalies(ledger: Ledger): Ledger {
  return {
    ...ledger,
    write: async (record, guard) => {
      const refusal = await ledger.write(record, guard);
      if (record.effect === "deny" && record.reason === TAMPERED) await ledger.write(anomalyOf(record));
      return refusal;
    },
  };
}

function anomalyOf(record: LedgerRecord): LedgerRecord {
  return { ...record, kind: "anomaly", effect: "" };
}

/**
 * The same for services whose methods write no decision: an error that says so is recorded before the caller hears of it.
 * Services with decisions of their own are left as they are.
 */
export function recordTampering(implementation: Implementation, ledger: Ledger): Implementation {
  if (implementation.definition === (McpProxyServiceService as Definition)) return implementation;
  const handlers = [...implementation.handlers].map(([name, handler]) => {
    if (handler.kind !== "unary") return [name, handler] as const;
    const run = async (request: unknown, ctx: CallContext) => {
      try {
        return await handler.run(request, ctx);
      } catch (error) {
        if (reasonOf(error) === TAMPERED) {
          const { spiffeId: caller, peerCertSha256: callerCert = "" } = ctx.principal;
          const who = callerColumns({ caller, callerCert });
          await ledger.write({ ...blankRecord("anomaly"), ...who, operation: name, reason: TAMPERED });
        }
        throw error;
      }
    };
    return [name, { ...handler, run } as AnyHandler] as const;
  });
  return { ...implementation, handlers: new Map(handlers) };
}
