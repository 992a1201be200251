import type { Passage } from "./passage.ts";
import type { ToolPinStore } from "./ports.ts";
import { proxyError } from "./proxy-error.ts";
import { isMac, type RowMac } from "./row-mac.ts";
import { type PinChange, type PinnedDefinition, pendingChange, type ToolPin } from "./tool-pins.ts";

/** What checking tools against their pins needs. */
export interface PinDeps {
  pins: ToolPinStore;
  mac: RowMac;
}

/** Longer definitions are judged by their digest all the same; only their text is not kept. */
const MAX_KEPT = 65_536;
/** More changes of one server than that are counted, not told one by one. */
const MAX_TOLD = 20;

/**
 * Checks tools, as their server describes them now, against their pins. A tool without a pin gets one: what is seen
 * first counts as approved. A tool that is not what was pinned is noted and refused, with a record of both digests
 * (case A052); nothing but an approval changes a pin.
 */
export async function admitTools(
  { pins, mac }: PinDeps,
  passage: Passage,
  tools: readonly PinnedDefinition[],
): Promise<void> {
  const { workspaceId, toolPins } = passage.access;
  const serverUrl = passage.destination?.url ?? "";
  const macOf = (toolName: string, sha256: Buffer) =>
    mac.toolPin({ workspaceId, serverUrl, toolName, sha256 });
  const known = new Map(toolPins.map((pin) => [pin.toolName, pin]));
  const isPinned = (tool: PinnedDefinition, pin: ToolPin | undefined) => pin?.sha256.equals(tool.sha256);
  const unknown = tools.filter((tool) => !isPinned(tool, known.get(tool.name)));
  if (unknown.length > 0) {
    const rows = unknown.map(({ name, definition, sha256 }) => ({
      name,
      definition: definition.length > MAX_KEPT ? "" : definition,
      sha256,
      mac: macOf(name, sha256),
    }));
    for (const pin of await pins.pin(workspaceId, serverUrl, rows)) known.set(pin.toolName, pin);
  }
  const changes: PinChange[] = [];
  for (const tool of tools) {
    const pin = known.get(tool.name);
    if (!pin || !isMac(pin.mac, macOf(pin.toolName, pin.sha256))) throw proxyError("ROW_TAMPERED");
    if (!isPinned(tool, pin)) changes.push({ toolName: tool.name, pinned: pin.sha256, seen: tool.sha256 });
  }
  for (const change of changes.slice(0, MAX_TOLD)) await passage.deny(pinChanged(change, changes.length));
  if (changes[0]) throw pinChanged(changes[0], changes.length);
}

/** Refuses a request for tools of which one was seen changed and is not approved. */
export function refusePending(pins: readonly ToolPin[]): void {
  const change = pendingChange(pins);
  if (change) throw pinChanged(change, pins.filter(({ seenSha256 }) => seenSha256 !== null).length);
}

function pinChanged(change: PinChange, count: number) {
  return proxyError("PIN_CHANGED", {
    metadata: {
      tool: change.toolName.slice(0, 255),
      pinned_sha256: change.pinned.toString("hex"),
      seen_sha256: change.seen.toString("hex"),
      changed_tools: String(count),
    },
  });
}
