import { askJournal, type JournalQuestion } from "./ask-journal.ts";
import { answerOf, runKey, type StoredCall, type ToolCallDeps } from "./call-mcp-tool.ts";
import type { JournalEntry } from "./ports.ts";
import { proxyError } from "./proxy-error.ts";
import { unknownResult } from "./tool-result.ts";

/** What the journal knows of a call. */
export interface KnownCall {
  /** Undefined while it runs. */
  call: StoredCall | undefined;
  isRunning: boolean;
  mayRepeat: boolean;
  requestId: string;
}

/** Says what the journal knows of a key, and calls nothing. */
export function getMcpCall(deps: ToolCallDeps, asked: JournalQuestion): Promise<KnownCall> {
  const { key } = asked;
  return askJournal(deps, asked, "mcp_get_call", async ({ sessionId }) => {
    const { entry, isRunningHere } = await findEntry(deps, sessionId, key);
    const isRunningElsewhere = entry.state !== "finished" && entry.isAlive && !entry.isOwn;
    const isRunning = isRunningHere || isRunningElsewhere;
    const lost = { key, result: unknownResult(), requestId: entry.requestId, durationMs: 0 };
    const call = isRunning ? undefined : (answerOf(deps, key, entry) ?? lost);
    const mayRepeat = !isRunning && entry.state === "dispatched" && entry.isRepeatable;
    return { call, isRunning, mayRepeat, requestId: entry.requestId };
  });
}

/** What the journal has of a key; throws for one under which nothing was ever sent and nobody is about to. */
export async function findEntry(
  { journal, running }: Pick<ToolCallDeps, "journal" | "running">,
  sessionId: string,
  key: string,
): Promise<{ entry: JournalEntry; isRunningHere: boolean }> {
  const entry = await journal.find(sessionId, key);
  const isRunningHere = running.has(runKey(sessionId, key));
  const isAbandoned = entry?.state === "claimed" && (entry.isOwn ? !isRunningHere : !entry.isAlive);
  if (!entry || isAbandoned) throw proxyError("CALL_NOT_FOUND");
  return { entry, isRunningHere };
}
