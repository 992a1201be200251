import { askJournal, type JournalQuestion } from "./ask-journal.ts";
import type { ToolCallDeps } from "./call-mcp-tool.ts";
import { proxyError } from "./proxy-error.ts";

/** Gives what the journal keeps of a finished call, whole; it calls nothing. */
export function readMcpCall(deps: ToolCallDeps, asked: JournalQuestion): Promise<Buffer> {
  return askJournal(deps, asked, "mcp_get_call", async ({ sessionId }) => {
    const entry = await deps.journal.find(sessionId, asked.key);
    if (entry?.state !== "finished" || !entry.result) throw proxyError("CALL_NOT_FOUND");
    return entry.result;
  });
}
