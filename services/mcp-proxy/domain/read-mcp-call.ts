import type { ToolCallDeps } from "./call-mcp-tool.ts";
import { endingOf, openPassage } from "./passage.ts";
import { proxyError } from "./proxy-error.ts";

/** Gives what the journal keeps of a finished call, whole; it calls nothing. */
export async function readMcpCall(
  deps: ToolCallDeps,
  asked: { token: string | undefined; caller: string; key: string },
): Promise<Buffer> {
  const { token, caller, key } = asked;
  const passage = await openPassage(deps, {
    token,
    caller,
    operation: "mcp_get_call",
    target: "",
    callKey: key,
    lookup: { kind: "static_bearer", urls: [], mcpServerName: "" },
    choose: () => ({}),
  });
  try {
    const entry = await deps.journal.find(passage.access.sessionId, key);
    if (entry?.state !== "finished" || !entry.result) throw proxyError("CALL_NOT_FOUND");
    await passage.finish({ reason: "ok" });
    return entry.result;
  } catch (error) {
    await passage.finish({ reason: endingOf(error) });
    throw error;
  }
}
