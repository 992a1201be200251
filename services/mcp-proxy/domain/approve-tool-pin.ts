import { newId } from "../../common/ids/new-id.ts";
import { parseDestination } from "./canonical-url.ts";
import {
  type AuditedCaller,
  blankRecord,
  callerColumns,
  recordText,
  type UpstreamEffect,
} from "./new-record.ts";
import type { Ledger, ToolPinRecord, ToolPinStore } from "./ports.ts";
import { proxyError } from "./proxy-error.ts";
import type { RowMac } from "./row-mac.ts";

/** What approving needs. */
export interface ApproveDeps {
  pins: ToolPinStore;
  ledger: Ledger;
  mac: RowMac;
}

/** Who approves what. */
export interface PinApproval extends AuditedCaller {
  workspaceId: string;
  serverUrl: string;
  toolName: string;
  sha256: Buffer;
}

/**
 * Makes a definition that was seen, or that is the pin already, the pin. The decision is in the audit log before it takes
 * effect, also when it names nothing that can be approved.
 */
export async function approveToolPin(deps: ApproveDeps, approval: PinApproval): Promise<ToolPinRecord> {
  const { workspaceId, toolName, sha256, caller } = approval;
  const destination = parseDestination(approval.serverUrl);
  const serverUrl = destination?.url ?? approval.serverUrl;
  const record = {
    ...blankRecord("decision", newId("req")),
    workspace_id: workspaceId,
    ...callerColumns(approval),
    operation: "approve_tool_pin",
    destination: recordText(destination?.origin ?? ""),
    target: recordText(`${toolName} sha256:${sha256.toString("hex")}`),
  };
  await deps.ledger.write({ ...record, effect: "allow" });
  const end = (reason: string, effect: UpstreamEffect) =>
    deps.ledger.write({ ...record, kind: "outcome", reason, upstream_effect: effect });
  const mac = deps.mac.toolPin({ workspaceId, serverUrl, toolName, sha256 });
  let pin: ToolPinRecord | undefined;
  try {
    pin = await deps.pins.approve({ workspaceId, serverUrl, toolName, sha256, mac, by: caller });
  } catch (error) {
    await end("error", "unknown");
    throw error;
  }
  await end(pin ? "ok" : "pin_not_found", pin ? "complete" : "none");
  if (!pin) throw proxyError("PIN_NOT_FOUND");
  return pin;
}
