import type { AccessRow, CredentialRow } from "./access.ts";
import type { McpProgress } from "./call-progress.ts";
import type { Destination } from "./canonical-url.ts";
import type { ResolvedAddress } from "./destination-policy.ts";
import type { MeetPeer } from "./peer-facts.ts";
import type { Secret } from "./ports.ts";
import type { PinnedDefinition, ToolDefinition } from "./tool-pins.ts";
import type { Traffic } from "./traffic.ts";

/** One tool as its server described it. */
export interface McpTool extends ToolDefinition {
  pin: PinnedDefinition;
}

/** What a tool answered; JSON as text. */
export interface McpToolAnswer {
  content: { type: string; json: string }[];
  structuredContentJson: string;
  isError: boolean;
}

/** One call. */
export interface McpToolCall {
  name: string;
  inputJson: string;
  silenceMs: number;
  totalMs: number;
  /** Judges the tool as its server describes it now, before the call is sent; what it throws ends the operation. */
  admit: (tool: McpTool) => Promise<void>;
  /** Told what the server reports while it works. */
  onProgress: (progress: McpProgress) => void;
}

/** Where an operation goes and with what. */
export interface McpTarget {
  access: AccessRow;
  serverName: string;
  destination: Destination;
  address: ResolvedAddress;
  credential: CredentialRow | undefined;
  secret: Secret | undefined;
  /** Told over which connection each request of the operation goes. */
  met: MeetPeer;
  /** Takes note of the bodies of all requests of the operation, one behind the other. */
  traffic: Traffic;
}

/** A server as a session knows it, whether or not something is sent there. */
export type McpPlace = Omit<McpTarget, "met" | "traffic">;

/** What is known when an operation is over, however it ended. */
export interface McpCounters {
  status: number;
  responseBytes: number;
  redactions: number;
  /** The caller is told what the server answered. */
  isReleased: boolean;
}

/**
 * How an operation failed. "unreachable", "redirect", "unauthorized", "refused", "not_listed" (the server has no such
 * tool, so it was not asked to run it) and "not_called" (it failed before it could be asked): the tool certainly did not run.
 */
export type McpFailureKind =
  | "not_listed"
  | "not_called"
  | "asks_back"
  | "unreachable"
  | "broken"
  | "malformed"
  | "redirect"
  | "unauthorized"
  | "refused"
  | "too_large"
  | "timeout"
  | "cancelled"
  | "rpc_error";

/** The answer of an operation, or its failure; both with what was counted. */
export type McpOutcome<T> =
  | { ok: true; value: T; counters: McpCounters }
  | { ok: false; failure: McpFailureKind; rpcCode: number; text: string; counters: McpCounters };

/** Calls MCP servers. The credential's version is part of a connection's identity. */
export interface McpCaller {
  listTools(target: McpTarget, signal: AbortSignal): Promise<McpOutcome<McpTool[]>>;
  callTool(target: McpTarget, call: McpToolCall, signal: AbortSignal): Promise<McpOutcome<McpToolAnswer>>;
  /** True when the server's last list calls the tool read-only or idempotent. */
  isRepeatable(target: McpPlace, toolName: string): boolean;
  /** True when the server's tools are known to be others than listTools answered last. */
  haveToolsChanged(target: McpTarget): boolean;
  /** Closes the connections of a session; null = of all. */
  drop(sessionId: string | null): void;
  close(): Promise<void>;
}
