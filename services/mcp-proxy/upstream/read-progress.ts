import type { McpProgress } from "../domain/call-progress.ts";
import type { McpTarget } from "../domain/mcp-caller.ts";
import { recordText } from "../domain/new-record.ts";
import { createRedactorOf } from "../domain/redactor.ts";
import { needlesOf } from "../domain/secret-forms.ts";

/** Longer messages are not looked through, and not passed on. */
const MAX_MESSAGE = 65_536;

/**
 * Makes the reader of one call's reports of progress: undefined for one that says no number. The bytes that it came in were searched for the
 * credential like all of the answer; the message is searched once more as the text that people see, before it is cut: what
 * JSON's escapes hid from the first search, and half of a credential at the end, must not be shown either.
 */
export function createProgressReader({
  secret,
  credential,
}: Pick<McpTarget, "secret" | "credential">): (reported: Reported) => McpProgress | undefined {
  // Once, however often a server reports.
  const needles = secret === undefined ? [] : needlesOf(secret.value);
  return (reported) => read(reported, needles, credential?.credentialId ?? "");
}

interface Reported {
  progress?: unknown;
  total?: unknown;
  message?: unknown;
}

function read(
  { progress, total, message }: Reported,
  needles: readonly Buffer[],
  label: string,
): McpProgress | undefined {
  if (typeof progress !== "number" || !Number.isFinite(progress)) return undefined;
  const isTotal = typeof total === "number" && Number.isFinite(total) && total > 0;
  const said = typeof message === "string" && message.length <= MAX_MESSAGE ? message : "";
  const redactor = createRedactorOf(needles, label);
  const clean = Buffer.concat([redactor.push(Buffer.from(said)), redactor.flush()]).toString();
  return { progress, total: isTotal ? total : 0, message: recordText(clean) };
}
