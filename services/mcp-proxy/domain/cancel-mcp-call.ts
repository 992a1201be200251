import { runKey, type ToolCallDeps } from "./call-mcp-tool.ts";
import { endingOf, openPassage } from "./passage.ts";

/** Gives up a call that is under way, here or at another replica; one that is not is left alone. */
export async function cancelMcpCall(
  deps: ToolCallDeps,
  asked: { token: string | undefined; caller: string; key: string },
): Promise<void> {
  const { token, caller, key } = asked;
  const passage = await openPassage(deps, {
    token,
    caller,
    operation: "mcp_cancel_call",
    target: "",
    callKey: key,
    lookup: { kind: "static_bearer", urls: [], mcpServerName: "" },
    choose: () => ({}),
  });
  const { sessionId } = passage.access;
  try {
    const run = deps.running.get(runKey(sessionId, key));
    if (run) {
      run.cancel();
      await run.promise.catch(() => {});
    } else {
      const entry = await deps.journal.find(sessionId, key);
      if (entry && entry.state !== "finished" && entry.isAlive && !entry.isOwn) {
        await deps.journal.askToCancel(sessionId, key);
      }
    }
    await passage.finish({ reason: "ok" });
  } catch (error) {
    await passage.finish({ reason: endingOf(error) });
    throw error;
  }
}
