import { newId } from "../../common/ids/new-id.ts";
import type { Event } from "../../gen/ganglion/types/v1/event.ts";
import { connectMesh, type Mesh } from "../client/connect-mesh.ts";
import { ensureAgent, ensureEnvironment } from "../client/ensure-runner.ts";
import { insist } from "../client/insist.ts";
import { watchSession } from "../client/watch-session.ts";
import { CliError, EXIT } from "../terminal/exit-codes.ts";
import { showEvent, upstreamOf } from "../terminal/show-events.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { Command } from "./command.ts";

const END_TURN = 1;
const REQUIRES_ACTION = 2;

/** `ganglion run` gives a task to an agent and follows it to its end. */
export const run: Command = {
  name: "run",
  usage: '"<task>"',
  summary: "give a task to an agent and follow it to the end",
  details: [
    "--agent and --environment use ones that exist; without them one of each is made once and used again.",
    "--session goes on with a session that exists.",
  ],
  options: {
    agent: { type: "string" },
    environment: { type: "string" },
    model: { type: "string", default: "claude-sonnet-5-5" },
    session: { type: "string" },
  },
  arity: [1, 1],
  run: async ({ positionals, options, stateDir, terminal }) => {
    const task = positionals[0] as string;
    if (task.trim() === "") throw new CliError("the task is empty", EXIT.usage);
    const mesh = connectMesh(stateDir);
    try {
      const text = (value: unknown) => (typeof value === "string" ? value : undefined);
      const [sessionId, after] = text(options.session)
        ? await addTask(mesh, text(options.session) as string, task)
        : await startTask(mesh, task, {
            agent: text(options.agent) ?? (await insist(() => ensureAgent(mesh, String(options.model)))),
            environment: text(options.environment) ?? (await insist(() => ensureEnvironment(mesh))),
          });
      terminal.object({ session_id: sessionId });
      terminal.line(terminal.style("dim", `session ${sessionId}`));
      return await follow(mesh, terminal, sessionId, after);
    } finally {
      mesh.close();
    }
  },
};

async function startTask(
  mesh: Mesh,
  task: string,
  from: { agent: string; environment: string },
): Promise<[string, bigint]> {
  // The same id each time: a repeated call makes no second session.
  const request = {
    requestId: newId("req"),
    agentId: from.agent,
    agentVersion: 0,
    environmentId: from.environment,
    title: task.replace(/\s+/g, " ").slice(0, 80),
    metadata: {},
    vaultIds: [],
    initialEvents: [message(task)],
    workspaceId: "",
    budget: undefined,
    repositories: [],
    ownVaultId: "",
  };
  const { session } = await insist(() => mesh.sessions.createSession(request));
  return [session?.id ?? "", 0n];
}

async function addTask(mesh: Mesh, sessionId: string, task: string): Promise<[string, bigint]> {
  const request = { sessionId, events: [message(task)], expectedPosition: undefined, epoch: undefined };
  const { stored } = await insist(() => mesh.sessions.emitEvents(request));
  return [sessionId, (stored[0]?.position ?? 1n) - 1n];
}

/** Shows events until the turn is over; the exit code says how it ended. */
async function follow(mesh: Mesh, terminal: Terminal, sessionId: string, after: bigint): Promise<number> {
  const progress = terminal.progress();
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort());
  let isScripted = false;
  try {
    progress.set("working");
    for await (const { message: part } of watchSession(mesh, sessionId, after, stop.signal)) {
      if (part?.$case !== "event") continue;
      const event = part.value;
      progress.clear();
      showEvent(terminal, event);
      if (upstreamOf(event) === "scripted" && !isScripted) {
        isScripted = true;
        terminal.line(
          terminal.style("yellow", "       scripted model: these answers are a script, no model was asked"),
        );
      }
      const code = endOf(event);
      if (code !== undefined) {
        if (isScripted) terminal.object({ scripted_model: true });
        return code;
      }
      progress.set("working");
    }
    return EXIT.ok;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    terminal.line(`the session goes on; follow it with: ganglion tail ${sessionId}`);
    return EXIT.failed;
  } finally {
    progress.clear();
  }
}

/** The exit code when an event ends the turn. */
function endOf({ body }: Event): number | undefined {
  if (body?.$case === "sessionStatusTerminated") return EXIT.failed;
  if (body?.$case !== "sessionStatusIdle") return undefined;
  const type = body.value.stopReason?.type;
  if (type === REQUIRES_ACTION) return EXIT.temporary;
  return type === END_TURN ? EXIT.ok : EXIT.failed;
}

function message(text: string): Event {
  const block = {
    type: "text",
    data: { $case: "json" as const, value: Buffer.from(JSON.stringify({ type: "text", text })) },
  };
  return {
    id: newId("sevt"),
    position: 0n,
    createTime: undefined,
    type: "",
    actor: undefined,
    threadId: "",
    epoch: 0n,
    traceparent: "",
    mayIgnore: false,
    body: { $case: "userMessage", value: { content: [block] } },
  };
}
