import type { AccessRow } from "./access.ts";
import { endingOf, openPassage, type PassageDeps } from "./passage.ts";

/** A question about a call by its key. */
export interface JournalQuestion {
  token: string | undefined;
  caller: string;
  callerCert: string;
  key: string;
}

/** Judges and records a question to the journal as any other request; it has no destination and needs no credential. */
export async function askJournal<T>(
  deps: PassageDeps,
  { token, caller, callerCert, key }: JournalQuestion,
  operation: "mcp_get_call" | "mcp_watch_call" | "mcp_cancel_call",
  work: (access: AccessRow) => Promise<T>,
): Promise<T> {
  const passage = await openPassage(deps, {
    token,
    caller,
    callerCert,
    operation,
    target: "",
    callKey: key,
    lookup: { kinds: [], urls: [], mcpServerName: "" },
    choose: () => ({}),
  });
  try {
    const answer = await work(passage.access);
    await passage.finish({ reason: "ok" });
    return answer;
  } catch (error) {
    await passage.finish({ reason: endingOf(error) });
    throw error;
  }
}
