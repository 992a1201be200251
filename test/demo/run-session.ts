import { readFileSync } from "node:fs";
import Anthropic from "@anthropic-ai/sdk";
import { createClient } from "../../services/common/grpc/create-client.ts";
import { SandboxServiceService } from "../../services/gen/ganglion/sandbox/v1/sandbox_service.ts";
import { SessionServiceService } from "../../services/gen/ganglion/session/v1/session_service.ts";
import type { Event } from "../../services/gen/ganglion/types/v1/event.ts";
import type { DemoMesh } from "./demo-mesh.ts";

/** What was seen of the session. */
export interface SessionRun {
  readonly sessionId: string;
  readonly events: Event[];
  /** From sending the message to the first character of an answer, as a watching client sees it. */
  readonly firstTokenMs: number;
  readonly totalMs: number;
  readonly killedBrain: string;
  readonly killedHand: string;
}

/** What the session is to use. */
export interface SessionPlan {
  readonly mcpUrl: string;
  readonly vaultId: string;
  show(event: Event): void;
  say(line: string): void;
}

const TIME_LIMIT_MS = 120_000;
/** Slow enough that a kill lands in the middle of an answer and not after it. */
const SCENARIO = "scenario: csv-analysis delayMs=60 mcp=get-sum";

/**
 * Runs one session with the official SDK and watches its log over gRPC. In the middle it kills the
 * harness that drives it, and later the hand that works for it.
 */
export async function runSession(mesh: DemoMesh, plan: SessionPlan): Promise<SessionRun> {
  const { sessionId, send } = await createSession(mesh, plan);
  const address = mesh.env.GANGLION_GRPC_ADDR as string;
  const log = createClient(SessionServiceService, address, mesh.tls, "gateway");
  const hands = createClient(SandboxServiceService, address, mesh.tls, "gateway");
  const killer = new Killer(mesh, hands, sessionId, plan);
  const events: Event[] = [];
  let sentAt = 0;
  let firstTokenMs = Number.NaN;
  const request = { sessionId, afterPosition: 0n, types: [], includePreviews: true, fromHead: false };
  try {
    for await (const { message } of log.watchEvents(request, {
      signal: AbortSignal.timeout(TIME_LIMIT_MS),
    })) {
      if (
        message?.$case === "preview" &&
        message.value.message?.$case === "text" &&
        Number.isNaN(firstTokenMs)
      ) {
        firstTokenMs = performance.now() - sentAt;
      }
      if (message?.$case !== "event") continue;
      const event = message.value;
      events.push(event);
      plan.show(event);
      if (event.position === 1n) {
        sentAt = performance.now();
        await send();
      }
      await killer.see(event);
      if (event.type === "session.status_idle") break;
    }
  } finally {
    killer.letSupervisorGoOn();
    log.close();
    hands.close();
  }
  const { brain, hand } = killer.killed();
  const totalMs = performance.now() - sentAt;
  return { sessionId, events, firstTokenMs, totalMs, killedBrain: brain, killedHand: hand };
}

async function createSession(
  mesh: DemoMesh,
  plan: SessionPlan,
): Promise<{ sessionId: string; send: () => Promise<void> }> {
  const client = new Anthropic({
    baseURL: mesh.env.ANTHROPIC_BASE_URL as string,
    apiKey: mesh.env.ANTHROPIC_API_KEY as string,
    maxRetries: 0,
  });
  const environment = await client.beta.environments.create({ name: "demo" });
  const agent = await client.beta.agents.create({
    name: "analyst",
    model: "claude-opus-5-5",
    system: "You analyse data with programs that you write and run in your hand.",
    mcp_servers: [{ type: "url", name: "everything", url: plan.mcpUrl }],
    tools: [
      { type: "agent_toolset_20260401" },
      {
        type: "mcp_toolset",
        mcp_server_name: "everything",
        default_config: { enabled: true, permission_policy: { type: "always_allow" } },
      },
    ],
  });
  const session = await client.beta.sessions.create({
    agent: agent.id,
    environment_id: environment.id,
    title: "Penguins",
    vault_ids: [plan.vaultId],
  });
  const csv = readFileSync(new URL("penguins.csv", import.meta.url), "utf8");
  const text = `${SCENARIO}\nHow does body mass follow flipper length, and how do the species differ?`;
  const send = async () => {
    await client.beta.sessions.events.send(session.id, {
      events: [
        {
          type: "user.message",
          content: [
            { type: "text", text },
            {
              type: "document",
              source: { type: "text", media_type: "text/plain", data: csv },
              title: "penguins.csv",
            },
          ],
        },
      ],
    });
  };
  return { sessionId: session.id, send };
}

/** Kills the brain in its second model request, and the hand after the next brain has used one. */
class Killer {
  #brain = "";
  #hand = "";
  #owner = "";
  #heldSupervisor: number | undefined;
  #requests = 0;
  readonly #mesh: DemoMesh;
  readonly #hands: ReturnType<typeof createClient<typeof SandboxServiceService>>;
  readonly #sessionId: string;
  readonly #plan: SessionPlan;

  constructor(
    mesh: DemoMesh,
    hands: ReturnType<typeof createClient<typeof SandboxServiceService>>,
    sessionId: string,
    plan: SessionPlan,
  ) {
    this.#mesh = mesh;
    this.#hands = hands;
    this.#sessionId = sessionId;
    this.#plan = plan;
  }

  async see({ body }: Event): Promise<void> {
    if (body?.$case === "ganglionLeaseAcquired") {
      this.#owner = body.value.owner.split("/").at(-1) ?? "";
      this.letSupervisorGoOn();
    }
    if (body?.$case === "spanModelRequestStart" && ++this.#requests === 2) this.#killBrain();
    const isUsed = body?.$case === "agentToolResult" && !body.value.isError;
    if (isUsed && this.#brain !== "" && this.#hand === "") await this.#killHand();
  }

  killed(): { brain: string; hand: string } {
    return { brain: this.#brain, hand: this.#hand };
  }

  /** The supervisor restarts again what it finds dead. */
  letSupervisorGoOn(): void {
    if (this.#heldSupervisor !== undefined) process.kill(this.#heldSupervisor, "SIGCONT");
    this.#heldSupervisor = undefined;
  }

  #killBrain(): void {
    const { [this.#owner]: pid, supervisor } = this.#mesh.pids();
    if (pid === undefined || supervisor === undefined)
      throw new Error(`no process of ${this.#owner} is known`);
    // On a quick machine the killed one would be back before the other is sure that it is dead, and might go on itself.
    process.kill(supervisor, "SIGSTOP");
    this.#heldSupervisor = supervisor;
    process.kill(pid, "SIGKILL");
    this.#brain = this.#owner;
    this.#plan.say(
      `kill -9 ${pid}: ${this.#owner}, the brain that drives this session, in the middle of an answer`,
    );
  }

  async #killHand(): Promise<void> {
    const { hands } = await this.#hands.listHands({ sessionId: this.#sessionId });
    const hand = hands.find(({ hostPid }) => hostPid > 0n);
    if (!hand) throw new Error("the session has no hand to kill");
    process.kill(Number(hand.hostPid), "SIGKILL");
    this.#hand = hand.id;
    this.#plan.say(`kill -9 ${hand.hostPid}: ${hand.id}, the hand that works for it, its files and all`);
  }
}
