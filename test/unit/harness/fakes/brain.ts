import { type Logger, pino } from "pino";
import { rulesEvaluator } from "../../../../services/harness/domain/rules-evaluator.ts";
import type { Patience } from "../../../../services/harness/driver/drive-context.ts";
import { type RunEnd, SessionRun } from "../../../../services/harness/driver/session-run.ts";
import type { Tokens } from "../../../../services/harness/ports/leases.ts";
import type { PermissionEvaluator } from "../../../../services/harness/ports/permission-evaluator.ts";
import type { WrittenEvent } from "../../../golden/load-log.ts";
import { MemoryLog } from "./memory-log.ts";
import { JournalHands, ListModel, ListPreviews, MapMcp, type Step, tokens } from "./scripted-parts.ts";

const PATIENCE: Patience = { callMs: 60, retryMs: 5, interruptMs: 50, evaluatorMs: 50 };

/** A log in memory and everything a brain needs to drive it. */
export class World {
  readonly log: MemoryLog;
  readonly model: ListModel;
  readonly hands = new JournalHands();
  readonly mcp = new MapMcp();
  readonly previews = new ListPreviews();
  tokens: Tokens = tokens;
  evaluator: PermissionEvaluator = rulesEvaluator;
  logger: Logger = pino({ level: "silent" });
  /** Input tokens by where they came from. */
  readonly counted = { cache_read: 0, cache_write: 0, uncached: 0 };

  constructor(written: readonly WrittenEvent[], ...steps: Step[]) {
    this.log = new MemoryLog(written);
    this.model = new ListModel(...steps);
  }

  /** Another brain takes the session over and begins to drive it. */
  brain(lingerMs = 0, patience: Partial<Patience> = {}): { run: SessionRun; end: Promise<RunEnd> } {
    const run = new SessionRun(
      this.log.lease(),
      {
        log: this.log,
        model: this.model,
        hands: this.hands,
        mcp: this.mcp,
        tokens: this.tokens,
        openPreviews: () => this.previews,
        evaluator: this.evaluator,
        countInput: (source, tokens) => {
          this.counted[source] += tokens;
        },
      },
      { logger: this.logger, patience: { ...PATIENCE, ...patience }, lingerMs },
    );
    return { run, end: run.run() };
  }

  /** Drives until nothing is left to do. */
  async drive(): Promise<RunEnd> {
    return this.brain().end;
  }
}

/** An agent that may call every tool of the MCP server "books". */
export const BOOKS = {
  tools: [
    {
      type: "mcp_toolset",
      mcp_server_name: "books",
      default_config: { permission_policy: { type: "always_allow" } },
    },
  ],
  mcp_servers: [{ name: "books", type: "url", url: "https://books.example" }],
};

/** A session with that agent, whose server has the one tool "find", of which it says nothing. */
export function withBooks(...steps: Step[]): World {
  const world = new World(session(BOOKS), ...steps);
  const tool = { name: "find", description: "", inputSchemaJson: Buffer.from("{}") };
  world.mcp.tools.set("books", [{ ...tool, annotationsJson: Buffer.alloc(0), pinSha256: Buffer.alloc(32) }]);
  return world;
}

/** A session with an agent, what a user said first, and the context strategy that the agent asks for. */
export function session(
  agent: Record<string, unknown> = {},
  said = "Hello.",
  contextStrategy = "",
  options: Record<string, unknown> = {},
): WrittenEvent[] {
  return [
    {
      id: "sevt_created",
      type: "ganglion.session_created",
      body: {
        agentJson: { model: "claude-test", tools: [{ type: "agent_toolset_20260401" }], ...agent },
        environmentJson: {},
        workspaceId: "wrkspc_default",
        contextStrategy,
        contextOptionsJson: options,
      },
    },
    { id: "sevt_said", type: "user.message", body: { content: [{ type: "text", text: said }] } },
  ];
}
