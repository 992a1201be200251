import { answerOf, runKey, type StoredCall, type ToolCallDeps } from "./call-mcp-tool.ts";
import { endingOf, openPassage } from "./passage.ts";
import { proxyError } from "./proxy-error.ts";
import { unknownResult } from "./tool-result.ts";

/** Says what the journal knows of a key, and calls nothing. */
export async function getMcpCall(
  deps: ToolCallDeps,
  asked: { token: string | undefined; caller: string; key: string },
): Promise<{ call: StoredCall | undefined; isRunning: boolean; mayRepeat: boolean; requestId: string }> {
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
    const isAbandoned =
      entry?.state === "claimed" &&
      (entry.isOwn ? !isRunningHere(deps, passage.access.sessionId, key) : !entry.isAlive);
    if (!entry || isAbandoned) throw proxyError("CALL_NOT_FOUND");
    const isRunningElsewhere = entry.state !== "finished" && entry.isAlive && !entry.isOwn;
    const isRunning = isRunningHere(deps, passage.access.sessionId, key) || isRunningElsewhere;
    const lost = { key, result: unknownResult(), requestId: entry.requestId, durationMs: 0 };
    const call = isRunning ? undefined : (answerOf(deps, key, entry) ?? lost);
    const mayRepeat = !isRunning && entry.state === "dispatched" && entry.isRepeatable;
    await passage.finish({ reason: "ok" });
    return { call, isRunning, mayRepeat, requestId: entry.requestId };
  } catch (error) {
    await passage.finish({ reason: endingOf(error) });
    throw error;
  }
}

function isRunningHere(deps: ToolCallDeps, sessionId: string, key: string): boolean {
  return deps.running.has(runKey(sessionId, key));
}
