import type { ContentBlock } from "../../gen/ganglion/types/v1/content.ts";
import type {
  GanglionMcpToolsResolved_Tool,
  Permission,
  ToolOutcome,
} from "../../gen/ganglion/types/v1/event.ts";
import type { Repository } from "../../gen/ganglion/types/v1/repository.ts";
import type { AgentConfig } from "./agent-config.ts";
import { noSpending, type Spending } from "./spending.ts";

/** What became of a call. */
export interface CallResult {
  content: readonly ContentBlock[];
  isError: boolean;
  outcome: ToolOutcome;
}

/** A result that is in the log. */
export interface LoggedResult extends CallResult {
  position: bigint;
}

/** One tool call of the model; `id` is its event's id and its key at the hand's host or the proxy (law L4). */
export interface Call {
  id: string;
  kind: "built-in" | "mcp" | "custom";
  name: string;
  /** MCP only. */
  serverName: string;
  /** Unique in its turn only (B004). */
  providerCallId: string;
  inputJson: Uint8Array;
  permission: Permission;
  policy: string;
  confirmation?: { isAllowed: boolean; denyMessage: string };
  /** The session was forked while it was open: it may have been run for the source, and is never looked up or run here. */
  isForeign?: true;
  result?: LoggedResult;
}

/** What the user said. */
export interface UserTurn {
  kind: "user";
  position: bigint;
  /** Position of the model request that consumed it, its place in the conversation; 0 = none has. */
  through: bigint;
  content: readonly ContentBlock[];
}

/** One whole answer of the model. */
export interface AssistantTurn {
  kind: "assistant";
  spanId: string;
  /** Where its model request ended. */
  position: bigint;
  /** Last position that belongs to it: its newest result, or where its request ended. */
  through: bigint;
  blocks: readonly ContentBlock[];
  calls: readonly Call[];
  /** The provider's stop reason, verbatim. */
  stopReason: string;
  stopDetailsJson: Uint8Array;
}

/** One entry of the conversation. */
export type Turn = UserTurn | AssistantTurn;

/** A context strategy by name and version, with its options as the log has them. */
export interface ChosenStrategy {
  name: string;
  optionsJson: Uint8Array;
}

/** What stands for the turns that left the model's window; they stay in the log (law L9). */
export interface Summary {
  /** Where the log has it. */
  position: bigint;
  /** Last position that it stands for. */
  throughPosition: bigint;
  block: ContentBlock;
}

/** What a model request promised about the beginning of those after it. */
export interface PrefixPromise {
  bytes: number;
  sha256: Uint8Array;
}

/** A model request that has no end in the log. */
export interface OpenSpan {
  id: string;
  /** True when its answer is a summary and no turn. */
  isCompaction: boolean;
  attempt: number;
  blocks: { index: number; block: ContentBlock; call?: Call }[];
}

/** A hand that serves the session. */
export interface KnownHand {
  id: string;
  sandboxAddr: string;
}

/** Totals of the session. */
export interface UsageTotals {
  inputTokens: bigint;
  outputTokens: bigint;
  cacheCreationInputTokens: bigint;
  cacheReadInputTokens: bigint;
  cacheCreation5mInputTokens: bigint;
  cacheCreation1hInputTokens: bigint;
}

/** Where a session stands. */
export type Status = "new" | "idle" | "running" | "rescheduling" | "terminated";

/**
 * Everything a brain knows, and it knows it from the log alone (law L1). Owned by whoever folds: fold() changes it in
 * place, so that a long log costs what its events cost.
 */
export interface SessionState {
  position: bigint;
  status: Status;
  workspaceId: string;
  agent: AgentConfig | null;
  isSelfHosted: boolean;
  /** The conversation as the model has seen it. */
  turns: Turn[];
  /** What stands for the turns before those. */
  summary: Summary | null;
  /** The context strategy that the agent asks for. */
  askedStrategy: ChosenStrategy | null;
  /** The context strategy in force, as recorded. */
  strategy: ChosenStrategy | null;
  /** The newest promise that no recorded change has made void. */
  promise: PrefixPromise | null;
  /** Tokens of the newest request and its answer as reported, and where it ended; null = not known since a change. */
  reported: { tokens: number; position: bigint } | null;
  /** The newest request was too long for the model's window. */
  isWindowExceeded: boolean;
  /** Compactions since the model last answered. */
  compactionsInRow: number;
  /** Requests for a summary that were too long themselves, since the last summary. */
  summariesTooLong: number;
  /** Input that no model request has consumed yet. */
  queued: UserTurn[];
  openSpan: OpenSpan | null;
  /** Calls without a result, by event id, in call order. */
  openCalls: Map<string, Call>;
  /** True from the first request of a turn until the idle that ends it. */
  isTurnOpen: boolean;
  /** Position of a user.interrupt that has not been honoured yet; 0 = none. */
  interruptPosition: bigint;
  /** Ids that the newest requires_action names; empty when the session waits for nothing. */
  waitingFor: readonly string[];
  /** Number of the newest attempt of the current step that failed; 0 = none did. */
  failedAttempt: number;
  /** How many of the step's attempts failed at the model, and not at a part of the mesh before it. */
  failedAtModel: number;
  /** Answers in a row that were cut at the token limit (B025). */
  truncatedAnswers: number;
  /** Answers in a row that ended with pause_turn. */
  pausedAnswers: number;
  /** Model requests since the session was last idle. */
  requestsInTurn: number;
  /** Leases since the session last got any further: brains die of it, or cannot go on with it. */
  fruitlessLeases: number;
  /** When the first of them was acquired, and the newest, by the log's clock; they mean nothing while there is none. */
  fruitlessFromMs: number;
  fruitlessToMs: number;
  /** What each new hand of the session gets a work tree of. */
  repositories: readonly Repository[];
  hand: KnownHand | null;
  handsProvisioned: number;
  /** Hosts that had a hand at any time: their journals may know a key. */
  sandboxAddrs: Set<string>;
  mcpTools: Map<string, readonly GanglionMcpToolsResolved_Tool[]>;
  /** MCP servers that could not be reached since the session began to run. */
  failedMcpServers: Set<string>;
  usage: UsageTotals;
  activeMs: bigint;
  spending: Spending;
  /** Type of an event that this version does not know and must not skip; empty = none. */
  unknownEventType: string;
}

/** The state before the first event. */
export function emptyState(): SessionState {
  return {
    position: 0n,
    status: "new",
    workspaceId: "",
    agent: null,
    isSelfHosted: false,
    turns: [],
    summary: null,
    askedStrategy: null,
    strategy: null,
    promise: null,
    reported: null,
    isWindowExceeded: false,
    compactionsInRow: 0,
    summariesTooLong: 0,
    queued: [],
    openSpan: null,
    openCalls: new Map(),
    isTurnOpen: false,
    interruptPosition: 0n,
    waitingFor: [],
    failedAttempt: 0,
    failedAtModel: 0,
    truncatedAnswers: 0,
    pausedAnswers: 0,
    requestsInTurn: 0,
    fruitlessLeases: 0,
    fruitlessFromMs: 0,
    fruitlessToMs: 0,
    repositories: [],
    hand: null,
    handsProvisioned: 0,
    sandboxAddrs: new Set(),
    mcpTools: new Map(),
    failedMcpServers: new Set(),
    usage: {
      inputTokens: 0n,
      outputTokens: 0n,
      cacheCreationInputTokens: 0n,
      cacheReadInputTokens: 0n,
      cacheCreation5mInputTokens: 0n,
      cacheCreation1hInputTokens: 0n,
    },
    activeMs: 0n,
    spending: noSpending(),
    unknownEventType: "",
  };
}
