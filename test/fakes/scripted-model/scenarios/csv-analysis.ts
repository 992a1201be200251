import type { Conversation, ToolCall } from "../conversation.ts";
import { makeInput } from "../make-input.ts";
import { blocksOf } from "../messages-request.ts";
import { call, type Reply, say } from "../reply.ts";
import { isFileMissing, isHandLost } from "../tool-result.ts";
import { describeFindings, type Findings, readFindings } from "./csv-findings.ts";
import { CSV_PROGRAM } from "./csv-program.ts";
import { firstMcpTool } from "./default-conversation.ts";
import { paced } from "./shapes.ts";

const DATA_FILE = "data.csv";
const PROGRAM_FILE = "analyse.mjs";
const COMMAND = `node ${PROGRAM_FILE} ${DATA_FILE}`;
const MAX_RESTARTS = 6;
const MAX_FAILURES = 3;

/**
 * csvAnalysis analyses the CSV of the message (a text document or a fenced block) with a program that it writes and runs
 * in its hand, has an MCP tool check a number (`mcp=<tool>`), and answers with figures out of the real outputs.
 * A lost hand has lost the files: it starts over.
 */
export function csvAnalysis(conversation: Conversation): Reply {
  return paced(conversation, nextStep(conversation));
}

function nextStep(conversation: Conversation): Reply {
  const csv = findCsv(conversation);
  if (!csv)
    return say("I see no CSV in your message: please send one as a text document or in a fenced block.");
  const restarts = conversation.calls.filter(needsRestart).length;
  if (restarts > MAX_RESTARTS) return say("The hand was lost too often; I give up without a result.");
  const calls = conversation.calls.slice(conversation.calls.findLastIndex(needsRestart) + 1);
  const failed = calls.filter(({ name, result }) => result?.isError && ["write", "bash"].includes(name));
  if (failed.length >= MAX_FAILURES && failed.includes(calls.at(-1) as ToolCall)) {
    return say(
      `I give up without a result: ${failed.at(-1)?.name} failed ${failed.length} times: ${failed.at(-1)?.result?.text}`,
    );
  }
  const isDone = (match: (one: ToolCall) => boolean) =>
    calls.some((one) => one.result && !one.result.isError && match(one));
  if (!isDone(({ input }) => input.file_path === DATA_FILE)) {
    const opening =
      restarts > 0
        ? "The hand was lost, and my files with it. I start over in a new one."
        : "I will write the data down first.";
    return call(opening, { name: "write", input: { file_path: DATA_FILE, content: csv } });
  }
  if (!isDone(({ input }) => input.file_path === PROGRAM_FILE)) {
    return call("Now a small program that groups the rows and fits a line.", {
      name: "write",
      input: { file_path: PROGRAM_FILE, content: CSV_PROGRAM },
    });
  }
  const findings = calls
    .map(({ result }) => (result?.isError ? undefined : readFindings(result?.text ?? "")))
    .find(Boolean);
  if (!findings) {
    const ran = calls.filter(({ input, result }) => input.command === COMMAND && result && !result.isError);
    if (ran.length >= MAX_FAILURES)
      return say(`I give up: the program printed no figures but: ${ran.at(-1)?.result?.text}`);
    return call("I run it.", { name: "bash", input: { command: COMMAND } });
  }
  return checkAndAnswer(conversation, calls, findings);
}

function checkAndAnswer(conversation: Conversation, calls: readonly ToolCall[], findings: Findings): Reply {
  const wish = conversation.params.get("mcp");
  const tool = firstMcpTool(conversation.tools, wish ? [wish] : ["get-sum", "echo"]);
  if (!tool) return say(`${describeFindings(findings)}\nNo MCP tool was offered to check the total with.`);
  const checks = calls.filter(({ name }) => name === tool.name);
  const answer = checks.find(({ result }) => result && !result.isError)?.result?.text;
  if (answer === undefined && checks.length < MAX_FAILURES) {
    const { a, b, total } = findings.check;
    const isSum = ["a", "b"].every((name) => tool.input_schema?.properties?.[name]);
    const input = isSum ? { a, b } : makeInput(tool, `total of ${findings.regression.y}: ${total}`);
    return call(`I have ${tool.name} check the total of ${findings.regression.y}.`, {
      name: tool.name,
      input,
    });
  }
  if (answer === undefined)
    return say(`${describeFindings(findings)}\n${tool.name} failed, so the total is unchecked.`);
  const agrees = answer.includes(String(findings.check.total));
  const verdict = agrees ? "agrees with" : "does not contain";
  return say(
    `${describeFindings(findings)}\n${tool.name} answered "${answer.trim()}", which ${verdict} the program's total of ${findings.check.total}.`,
  );
}

function needsRestart({ name, result }: ToolCall): boolean {
  if (!result) return false;
  // A shell reports a missing file in its output, with or without an error flag.
  const isMissing = name === "bash" && isFileMissing(result.text) && !readFindings(result.text);
  return isMissing || (result.isError && isHandLost(result.text));
}

function findCsv({ task, taskText }: Conversation): string | undefined {
  const document = blocksOf(task).find(({ type }) => type === "document")?.source as
    | { data?: string }
    | undefined;
  const fenced = /```(?:csv)?[ \t]*\n([\s\S]*?)\n[ \t]*```/.exec(taskText)?.[1];
  const csv = document?.data ?? fenced;
  return csv?.includes(",") ? `${csv.trim()}\n` : undefined;
}
