import { readFileSync } from "node:fs";
import type { Event } from "../../services/gen/ganglion/types/v1/event.ts";
import { textOf } from "./narrate.ts";
import type { SessionRun } from "./run-session.ts";

/** One claim of the demo, and whether it holds. */
export interface Claim {
  readonly claim: string;
  readonly holds: boolean;
}

/** What the session's log shows, counted. */
export interface SessionFacts {
  readonly brains: string[];
  readonly hands: string[];
  readonly answer: string;
  readonly claims: Claim[];
}

/** Checks what the demo says about its session against the log; `mcpCalls` is what the MCP server itself counted. */
export function checkSession(run: SessionRun, mcpCalls: number): SessionFacts {
  const { events } = run;
  const bodies = events.map(({ body }) => body);
  const brains = [
    ...new Set(bodies.flatMap((b) => (b?.$case === "ganglionLeaseAcquired" ? [b.value.owner] : []))),
  ];
  const hands = bodies.flatMap((b) => (b?.$case === "ganglionHandProvisioned" ? [b.value.handId] : []));
  const lost = bodies.flatMap((b) => (b?.$case === "ganglionHandLost" ? [b.value.handId] : []));
  const answer = textOf(
    bodies.flatMap((b) => (b?.$case === "agentMessage" ? [b.value.block] : [])).slice(-1),
  );
  const last = bodies.at(-1);
  const killed = events.find(({ body }) => body?.$case === "ganglionLeaseAcquired" && body.value.isTakeover);
  const claims: Claim[] = [
    {
      claim: "the log has every position from 1, once",
      holds: events.every((e, n) => e.position === BigInt(n + 1)),
    },
    { claim: "every tool call has exactly one result", holds: callsAndResultsMatch(events) },
    { claim: "another brain took the session over", holds: killed !== undefined && brains.length >= 2 },
    {
      claim: "the killed brain appended nothing after that",
      holds: isFencedOff(events, killed, run.killedBrain),
    },
    { claim: "the hand's death was told to the model as an error", holds: lost.includes(run.killedHand) },
    { claim: "a new hand went on", holds: hands.length >= 2 && hands.at(-1) !== run.killedHand },
    { claim: "the MCP server saw one call", holds: mcpCalls === 1 },
    {
      claim: "the answer quotes the figures that the file really has",
      holds: expectedFigures().every((figure) => answer.includes(figure)),
    },
    {
      claim: "the turn ended by itself, and idle is its last event",
      holds: last?.$case === "sessionStatusIdle" && last.value.stopReason?.type === 1,
    },
  ];
  return { brains, hands, answer, claims };
}

/** By the log: intents and results, in pairs (law L4). */
function callsAndResultsMatch(events: Event[]): boolean {
  const closedSpans = new Set(
    events.flatMap(({ body }) =>
      body?.$case === "spanModelRequestEnd" && !body.value.isError ? [body.value.modelRequestStartId] : [],
    ),
  );
  const calls = events.flatMap(({ id, body }) =>
    (body?.$case === "agentToolUse" || body?.$case === "agentMcpToolUse") &&
    closedSpans.has(body.value.modelRequestStartId)
      ? [id]
      : [],
  );
  const results = events.flatMap(({ body }) => {
    if (body?.$case === "agentToolResult") return [body.value.toolUseId];
    return body?.$case === "agentMcpToolResult" ? [body.value.mcpToolUseId] : [];
  });
  return calls.length > 0 && calls.toSorted().join() === results.toSorted().join();
}

function isFencedOff(events: Event[], takeover: Event | undefined, killed: string): boolean {
  if (!takeover || killed === "") return false;
  const epoch = takeover.body?.$case === "ganglionLeaseAcquired" ? takeover.body.value.epoch : 0n;
  const after = events.filter(({ position }) => position > takeover.position);
  return after.every((event) => event.epoch === 0n || event.epoch >= epoch);
}

/** The same figures, worked out here from the same file: rows, and the mean body mass of each species. */
function expectedFigures(): string[] {
  const [, ...lines] = readFileSync(new URL("penguins.csv", import.meta.url), "utf8")
    .trim()
    .split("\n");
  const rows = lines.map((line) => line.split(","));
  const species = [...new Set(rows.map(([name]) => name))];
  const means = species.map((name) => {
    const masses = rows.filter((row) => row[0] === name).map((row) => Number(row[2]));
    return masses.reduce((total, mass) => total + mass, 0) / masses.length;
  });
  return [`${rows.length} rows`, ...means.map((mean) => String(Math.round(mean * 1e4) / 1e4))];
}
