import { createHash } from "node:crypto";
import { admitTools, refusePending } from "./admit-tools.ts";
import { CallProgress, type McpProgress } from "./call-progress.ts";
import type { Destination } from "./canonical-url.ts";
import { chooseMcpServer } from "./choose-mcp.ts";
import { MCP_KINDS } from "./credential-config.ts";
import {
  failureError,
  isTokenRefused,
  type McpDeps,
  refuseOwnCredential,
  statusOf,
} from "./list-mcp-tools.ts";
import type { LiveSessions } from "./live-sessions.ts";
import type { McpPlace, McpTool } from "./mcp-caller.ts";
import { renewAfterRefusal } from "./oauth/renewals.ts";
import { endingOf, openPassage, type Passage, type Sent, secretAndAddress } from "./passage.ts";
import type { CallJournal, JournalEntry } from "./ports.ts";
import { proxyError } from "./proxy-error.ts";
import {
  didNotRun,
  forgottenResult,
  resultOfAnswer,
  resultOfFailure,
  type ToolResult,
  unknownResult,
} from "./tool-result.ts";

/** What tool calls need. */
export interface ToolCallDeps extends McpDeps {
  journal: CallJournal;
  live: LiveSessions;
  encode: (call: StoredCall) => Buffer;
  decode: (bytes: Buffer) => StoredCall;
  /** Calls of this process that are under way, by runKey. */
  running: Map<string, Run>;
  wait: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** A call that is under way in this process. It goes on whether or not anybody waits for it. */
export interface Run {
  promise: Promise<Answered>;
  /** What its server reports meanwhile. */
  progress: CallProgress;
  cancel: () => void;
}

/** A call as it is answered and kept in the journal. */
export interface StoredCall {
  key: string;
  result: ToolResult;
  requestId: string;
  durationMs: number;
}

/** A call with what only the one who asks now is told. */
export interface Answered {
  call: StoredCall;
  isReplayed: boolean;
  /** The server's tools are not those that were listed last. */
  areToolsChanged: boolean;
}

/** What a caller asks for. */
export interface ToolCall {
  token: string | undefined;
  caller: string;
  callerCert: string;
  /** Metadata in which the caller brings a credential of its own, which it may not (cases A025, B110). */
  ownCredential?: string;
  serverName: string;
  name: string;
  inputJson: string;
  key: string;
  timeoutMs: number;
  /** Keys of earlier calls whose results the log holds. */
  acknowledgedKeys: readonly string[];
}

/** A call that is being run. */
interface RunningCall extends ToolCall {
  onProgress: (progress: McpProgress) => void;
}

/** However often a server reports progress: no call takes longer. */
const TOTAL_MS = 600_000;
const POLL_MS = 250;

/**
 * Calls a tool, once (law L4). The key decides: new, it is claimed together with the decision; under way here, this
 * caller waits for the same run (a caller that goes away only stops waiting); finished, it is answered from the journal;
 * lost with the process that ran it, it is run again only if nothing was sent or the tool may be repeated, and is otherwise
 * answered as unknown.
 */
export async function callMcpTool(
  deps: ToolCallDeps,
  call: ToolCall,
  signal: AbortSignal,
): Promise<Answered> {
  const digest = createHash("sha256")
    .update(JSON.stringify([call.serverName, call.name]))
    .update(call.inputJson)
    .digest();
  const passage = await openCall(deps, call, digest);
  if (call.acknowledgedKeys.length > 0) {
    // Only ever a matter of space: whoever asks need not wait for it, and it may fail.
    deps.journal.forget(passage.access.sessionId, call.acknowledgedKeys).catch(() => {});
  }
  if (passage.isClaimed) return runAndWait(deps, call, passage, signal);
  try {
    return await settleKnownKey(deps, call, passage, digest, signal);
  } catch (error) {
    await passage.finish({ reason: endingOf(error) });
    throw error;
  }
}

/** Asks for a call to be let through, and for its key. */
function openCall(deps: ToolCallDeps, call: ToolCall, digest: Buffer): Promise<Passage> {
  return openPassage(deps, {
    token: call.token,
    caller: call.caller,
    callerCert: call.callerCert,
    operation: "mcp_call_tool",
    target: call.name,
    callKey: call.key,
    claimDigest: digest,
    lookup: { kinds: MCP_KINDS, urls: [], mcpServerName: call.serverName, pinnedTool: call.name },
    choose: (access, ask) => {
      refuseOwnCredential(call);
      refusePending(access.toolPins);
      return chooseMcpServer(access, call.serverName, ask);
    },
    sendNow: (known) => {
      const address = deps.resolve.known(known.destination);
      return address && sentOf(deps, call, { ...known, address, serverName: call.serverName });
    },
  });
}

function sentOf(deps: ToolCallDeps, { inputJson, name }: ToolCall, target: McpPlace): Sent {
  return {
    address: target.address,
    requestBytes: Buffer.byteLength(inputJson),
    isRepeatable: deps.mcp.isRepeatable(target, name),
  };
}

async function settleKnownKey(
  deps: ToolCallDeps,
  call: ToolCall,
  passage: Passage,
  digest: Buffer,
  signal: AbortSignal,
): Promise<Answered> {
  const { access } = passage;
  const runningHere = () => deps.running.get(runKey(access.sessionId, call.key));
  // A claim without a run may be a moment old, and a run may end while we look: believe only what is seen twice.
  let seen = "";
  for (;;) {
    signal.throwIfAborted();
    const before = runningHere();
    const entry = await deps.journal.find(access.sessionId, call.key);
    if (entry && !entry.requestDigest.equals(digest)) throw proxyError("ID_REUSED");
    const running = before ?? runningHere();
    if (running !== undefined) {
      const shared = await untilAborted(running.promise, signal);
      await passage.finish({ reason: "attached" });
      return { ...shared, isReplayed: true };
    }
    const state = entry ? `${entry.requestId} ${entry.state}` : "";
    const isSure = entry?.state === "finished" || seen === state;
    const known = entry && isSure ? answerOf(deps, call.key, entry) : undefined;
    if (known) {
      await passage.finish({ reason: "replayed" });
      return { call: known, isReplayed: true, areToolsChanged: false };
    }
    if (entry && isSure && (entry.isOwn || !entry.isAlive) && passage.claim) {
      // Nobody works on it: nothing was sent, or the tool may be repeated.
      if (await deps.journal.takeOver(passage.claim, entry)) {
        return runAndWait(deps, call, passage, signal);
      }
    }
    // The run that held the key ended without having run the tool; the caller may try again.
    if (!entry && seen !== "") throw proxyError("UPSTREAM_UNREACHABLE");
    seen = state;
    await deps.wait(POLL_MS, signal);
  }
}

/** What the journal alone says of a key; undefined when it may be run, or is being run elsewhere. */
export function answerOf(
  deps: Pick<ToolCallDeps, "decode">,
  key: string,
  entry: JournalEntry,
): StoredCall | undefined {
  if (entry.state === "finished") {
    if (entry.result) return deps.decode(entry.result);
    return { key, result: forgottenResult(), requestId: entry.requestId, durationMs: 0 };
  }
  const isLost = entry.state === "dispatched" && (entry.isOwn || !entry.isAlive);
  if (!isLost || entry.isRepeatable) return undefined;
  return { key, result: unknownResult(), requestId: entry.requestId, durationMs: 0 };
}

/** The name of a run. */
export function runKey(sessionId: string, key: string): string {
  return JSON.stringify([sessionId, key]);
}

function runAndWait(
  deps: ToolCallDeps,
  call: ToolCall,
  passage: Passage,
  signal: AbortSignal,
): Promise<Answered> {
  const key = runKey(passage.access.sessionId, call.key);
  const cancelled = new AbortController();
  const progress = new CallProgress();
  const running = { ...call, onProgress: (report: McpProgress) => progress.report(report) };
  const promise = runRenewing(deps, running, passage, cancelled.signal).finally(() => {
    deps.running.delete(key);
    progress.end();
  });
  // The one who asked may be gone by then.
  promise.catch(() => {});
  deps.running.set(key, { promise, progress, cancel: () => cancelled.abort() });
  return untilAborted(promise, signal);
}

/** Runs a call and, when the server refused an OAuth token that could be renewed, once more: the tool has not run. */
async function runRenewing(
  deps: ToolCallDeps,
  call: RunningCall,
  passage: Passage,
  signal: AbortSignal,
): Promise<Answered> {
  const seen = { version: 0n };
  try {
    return await runOnce(deps, call, passage, signal, seen);
  } catch (error) {
    if (!isTokenRefused(error)) throw error;
    const { access, credential } = passage;
    if (!(await renewAfterRefusal(deps.renewals, access, credential, seen.version))) throw error;
    // A second try is a second request: with its own decision, and the token asked about again.
    const again = await openCall(deps, call, passage.claim?.requestDigest as Buffer);
    if (again.isClaimed) return runOnce(deps, call, again, signal, seen);
    await again.finish({ reason: "upstream_unauthorized" });
    throw error;
  }
}

async function runOnce(
  deps: ToolCallDeps,
  call: RunningCall,
  passage: Passage,
  signal: AbortSignal,
  seen: { version: bigint },
): Promise<Answered> {
  const startedAt = Date.now();
  const { access, credential, dispatched, requestId } = passage;
  const destination = passage.destination as Destination;
  const ended = new AbortController();
  const unregister = deps.live.add({
    sessionId: access.sessionId,
    epoch: access.epoch,
    endsWith: "session",
    cut: (reason) => ended.abort(proxyError(reason)),
  });
  try {
    const [secret, address] = await secretAndAddress(passage, () => deps.resolve(destination));
    seen.version = secret?.version ?? 0n;
    const { serverName } = call;
    const { met, traffic } = passage;
    const target = { access, serverName, destination, address, credential, secret, met, traffic };
    if (signal.aborted) throw proxyError("UPSTREAM_UNREACHABLE");
    if (!dispatched && !(await passage.dispatch(sentOf(deps, call, target)))) throw proxyError("ID_REUSED");
    const limits = { silenceMs: call.timeoutMs, totalMs: TOTAL_MS };
    const admit = ({ pin }: McpTool) => admitTools(deps, passage, [pin]);
    const either = AbortSignal.any([signal, ended.signal]);
    const outcome = await deps.mcp.callTool(target, { ...call, ...limits, admit }, either);
    if (!outcome.ok && didNotRun(outcome.failure)) {
      throw failureError(outcome.failure, credential !== undefined, outcome.counters.status);
    }
    const result = outcome.ok
      ? resultOfAnswer(outcome.value)
      : resultOfFailure(outcome.failure, outcome.counters.status, outcome.rpcCode, outcome.text);
    const stored = { key: call.key, result, requestId, durationMs: Date.now() - startedAt };
    const areToolsChanged = deps.mcp.haveToolsChanged(target);
    const reason = outcome.ok ? (result.isError ? "tool_error" : "ok") : wordOf(outcome.failure);
    try {
      await passage.finish({ reason, ...outcome.counters }, deps.encode(stored));
    } catch {
      // It ran, and that cannot be written down: the journal will say "unknown" for ever, so this answer does too.
      return { call: { ...stored, result: unknownResult() }, isReplayed: false, areToolsChanged };
    }
    return { call: stored, isReplayed: false, areToolsChanged };
  } catch (error) {
    // Nothing was sent, or the server refused it: the key is free again.
    await passage.finish({ reason: endingOf(error), status: statusOf(error) }, null);
    throw error;
  } finally {
    unregister();
  }
}

function wordOf(failure: string): string {
  return failure === "broken" || failure === "malformed" ? "unknown" : failure;
}

function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
