import { askJournal, type JournalQuestion } from "./ask-journal.ts";
import { runKey, type ToolCallDeps } from "./call-mcp-tool.ts";

/** Gives up a call that is under way, here or at another replica; one that is not is left alone. */
export function cancelMcpCall(deps: ToolCallDeps, asked: JournalQuestion): Promise<void> {
  const { key } = asked;
  return askJournal(deps, asked, "mcp_cancel_call", async ({ sessionId }) => {
    const run = deps.running.get(runKey(sessionId, key));
    if (run) {
      run.cancel();
      await run.promise.catch(() => {});
      return;
    }
    const entry = await deps.journal.find(sessionId, key);
    if (entry && entry.state !== "finished" && entry.isAlive && !entry.isOwn) {
      await deps.journal.askToCancel(sessionId, key);
    }
  });
}
