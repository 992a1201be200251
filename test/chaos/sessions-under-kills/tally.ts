import type { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { ToolOutcome } from "../../../services/gen/ganglion/types/v1/event.ts";
import { bodiesOf, checkLog, textOf } from "../../kit/check-log.ts";

/** What became of all jobs. */
export interface Tally {
  /** Messages, turns and effects that were acknowledged and are not there. */
  lost: string[];
  /** Messages that are there twice, and effects that nobody asked for or that happened twice. */
  duplicated: string[];
  /** Calls by what their one result says. */
  completed: number;
  /** The hand died with the call: the result says so. */
  handDied: number;
  notRun: number;
  unknown: number;
  events: number;
}

/** What the world outside the mesh has seen. */
export interface World {
  /** How often the MCP server counted each key. */
  readonly counts: Readonly<Record<string, number>>;
  /** In how many hands a command was begun. */
  handsOf(key: string): number;
}

/** A job's own account. */
export interface Account {
  readonly name: string;
  readonly sent: readonly string[];
  readonly turnsDone: number;
}

/** emptyTally is what there is before anybody was counted. */
export function emptyTally(): Tally {
  return { lost: [], duplicated: [], completed: 0, handDied: 0, notRun: 0, unknown: 0, events: 0 };
}

/** tallyJob holds a session's log against what its client and the world have seen; a log that breaks a law throws. */
export function tallyJob(tally: Tally, job: Account, events: readonly Event[], world: World): void {
  checkLog(events);
  tally.events += events.length;
  tallyMessages(tally, job, events);
  const idle = bodiesOf(events, "sessionStatusIdle").length;
  if (idle !== job.turnsDone) {
    const into = idle < job.turnsDone ? tally.lost : tally.duplicated;
    into.push(`${job.name}: ${idle} ends of ${job.turnsDone} turns`);
  }
  const results = new Map<string, Result>();
  for (const { toolUseId, ...result } of bodiesOf(events, "agentToolResult")) results.set(toolUseId, result);
  for (const { mcpToolUseId, ...result } of bodiesOf(events, "agentMcpToolResult"))
    results.set(mcpToolUseId, result);
  for (const { id, body } of events) {
    const result = results.get(id);
    if (!result) continue;
    if (body?.$case === "agentMcpToolUse") {
      const { key } = JSON.parse(Buffer.from(body.value.inputJson).toString());
      tallyCall(tally, key, result, world.counts[key] ?? 0);
    } else if (body?.$case === "agentToolUse") {
      const { command } = JSON.parse(Buffer.from(body.value.inputJson).toString());
      const key = /ran-(\S+);/.exec(command)?.[1] ?? "";
      tallyCommand(tally, key, result, world.handsOf(key));
    }
  }
}

/** tallyPhantoms counts effects that no log asked for. */
export function tallyPhantoms(tally: Tally, asked: ReadonlySet<string>, world: World): void {
  for (const key of Object.keys(world.counts))
    if (!asked.has(key)) tally.duplicated.push(`${key}: nobody asked for it`);
}

function tallyMessages(tally: Tally, { name, sent }: Account, events: readonly Event[]): void {
  const stored = events.filter(({ type }) => type === "user.message");
  for (const id of sent)
    if (!stored.some((event) => event.id === id)) tally.lost.push(`${name}: message ${id}`);
  const texts = stored.map(({ body }) => (body?.$case === "userMessage" ? textOf(body.value.content) : ""));
  if (new Set(texts).size !== texts.length) tally.duplicated.push(`${name}: a user message`);
}

interface Result {
  readonly outcome: ToolOutcome;
  readonly isError: boolean;
  readonly content: Parameters<typeof textOf>[0];
}

function tallyCall(tally: Tally, key: string, { outcome, isError, content }: Result, count: number): void {
  if (count > 1) tally.duplicated.push(`${key}: counted ${count} times`);
  switch (outcome) {
    case ToolOutcome.TOOL_OUTCOME_COMPLETED:
      tally.completed += 1;
      if (count === 0 || isError || textOf(content) !== "1") {
        const said = `${textOf(content).slice(0, 200)}${isError ? " (error)" : ""}`;
        tally.lost.push(`${key}: counted ${count} times, said ${said}`);
      }
      break;
    case ToolOutcome.TOOL_OUTCOME_NOT_RUN:
      tally.notRun += 1;
      if (count > 0) tally.duplicated.push(`${key}: did run`);
      break;
    default:
      tally.unknown += 1;
  }
}

function tallyCommand(tally: Tally, key: string, { outcome, isError, content }: Result, hands: number): void {
  if (hands > 1) tally.duplicated.push(`${key}: ran in ${hands} hands`);
  const said = textOf(content).trim();
  switch (outcome) {
    case ToolOutcome.TOOL_OUTCOME_COMPLETED:
      if (isError) tally.handDied += 1;
      else tally.completed += 1;
      if (!isError && said !== "1") tally.duplicated.push(`${key}: ran ${said} times`);
      break;
    case ToolOutcome.TOOL_OUTCOME_NOT_RUN:
      tally.notRun += 1;
      if (hands > 0) tally.duplicated.push(`${key}: did run`);
      break;
    default:
      tally.unknown += 1;
  }
}
