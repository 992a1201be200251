import { askJournal, type JournalQuestion } from "./ask-journal.ts";
import { runKey, type ToolCallDeps } from "./call-mcp-tool.ts";
import type { McpProgress } from "./call-progress.ts";
import { findEntry } from "./get-mcp-call.ts";
import { proxyError } from "./proxy-error.ts";

/** A reader is shown no more than four reports a second. */
const GAP_MS = 250;

/**
 * Gives what the server of a call reports for as long as the call is under way in this process, and nothing for any other
 * call. What cuts a brain's other streams cuts this one: the end of the session, and of its epoch.
 */
export async function* watchMcpCall(
  deps: ToolCallDeps,
  asked: JournalQuestion,
  signal: AbortSignal,
): AsyncGenerator<McpProgress, void, undefined> {
  const { run, sessionId, epoch } = await askJournal(deps, asked, "mcp_watch_call", async (access) => {
    await findEntry(deps, access.sessionId, asked.key);
    return { ...access, run: deps.running.get(runKey(access.sessionId, asked.key)) };
  });
  if (!run) return;
  const cut = new AbortController();
  const unregister = deps.live.add({
    sessionId,
    epoch,
    endsWith: "epoch",
    cut: (reason) => cut.abort(proxyError(reason)),
  });
  try {
    yield* run.progress.watch(GAP_MS, AbortSignal.any([signal, cut.signal]));
    cut.signal.throwIfAborted();
  } finally {
    unregister();
  }
}
