import { createAuditMacs } from "../../services/mcp-proxy/domain/audit-macs.ts";
import { createTraffic, type Traffic } from "../../services/mcp-proxy/domain/traffic.ts";

/** What takes note of bodies, for those who write no outcome of it. */
export function unseenTraffic(): Traffic {
  return createTraffic(createAuditMacs(Buffer.alloc(32)));
}
