import type { ContentBlock } from "../../gen/ganglion/types/v1/content.ts";
import { marked, withBreakpoints } from "./context/cache-breakpoints.ts";
import { contextOf } from "./context/context-of.ts";
import { LIMITS } from "./limits.ts";
import { type Contents, resolveIn } from "./payload-contents.ts";
import { messagePieces, type Piece, projectMessages } from "./project-messages.ts";
import { type RequestDigests, requestDigests } from "./request-digests.ts";
import type { SessionState } from "./session-state.ts";
import { toolCatalog } from "./tool-catalog.ts";
import { writeMessages } from "./write-messages.ts";

/** A request, and how it begins. */
export interface Projection {
  body: Buffer;
  /** What the next request begins with as well, breakpoints aside; null = the strategy does not say. */
  stablePrefix: Buffer | null;
  digests: RequestDigests;
}

/** The body alone. */
export function projectRequest(state: SessionState, contents: Contents = NOTHING): Buffer {
  return project(state, contents).body;
}

/**
 * Builds a Messages request from the folded log, input that is still queued included, as its context strategy shows it.
 * Pure and exact: two brains that folded the same log send the same bytes (B014). Blocks of the model are spliced in as
 * they came, byte for byte (B008, B010). Throws rather than build a request with an unanswered call in it (law L4), or
 * without a content that is stored beside the log and not among `contents`.
 */
export function project(state: SessionState, contents: Contents = NOTHING): Projection {
  if (state.openCalls.size > 0) throw new Error("a call is unanswered");
  if (!state.agent || state.agent.model.id === "") throw new Error("the agent names no model");
  const context = contextOf(state);
  if (!context) throw new Error("the context strategy is not known");
  const { strategy, options } = context;
  const turns = strategy.view(state, options);
  const resolve = resolveIn(contents);
  const written = writeMessages(state.summary, turns, state.queued, resolve);
  if (written.length === 0) throw new Error("the conversation is empty");
  if (strategy.settings === "first") {
    const pieces = [`{"model":${model(state)}`, ...settings(state, "automatic"), ...beginning(state)];
    return withDigests(state, concat([...pieces, ...written, "]}"]), null);
  }
  const isExplicit = strategy.breakpoints === "explicit";
  // The last message may yet be added to, so what closes it is not part of the prefix.
  const close = "]}";
  const plain = whole(state, written, isExplicit ? "list" : "text");
  const end = ["]", ...settings(state, strategy.breakpoints), "}"];
  const marks = () =>
    messagePieces(withBreakpoints(projectMessages(state.summary, [...turns, ...state.queued], resolve)));
  const body = concat([...(isExplicit ? whole(state, marks(), "marked") : plain), ...end]);
  if (strategy.promise === "none") return withDigests(state, body, null);
  const before = isExplicit ? concat(plain) : body.subarray(0, body.length - concat(end).length);
  return withDigests(state, body, before.subarray(0, before.length - close.length));
}

function withDigests({ promise }: SessionState, body: Buffer, stablePrefix: Buffer | null): Projection {
  return { body, stablePrefix, digests: requestDigests(body, stablePrefix, promise?.bytes) };
}

const NOTHING: Contents = new Map<string, ContentBlock>();

/** How the parts before the messages are written: as plainly as can be, as lists, or as lists with breakpoints. */
type Form = "text" | "list" | "marked";

function whole(state: SessionState, messages: readonly Piece[], form: Form): Piece[] {
  return [`{"model":${model(state)}`, ...beginning(state, form), ...messages];
}

function beginning(state: SessionState, form: Form = "text"): Piece[] {
  const pieces: Piece[] = [];
  const system = state.agent?.system ?? "";
  if (system !== "") {
    const block = JSON.stringify({ type: "text", text: system });
    const list = `[${form === "marked" ? marked(block) : block}]`;
    pieces.push(`,"system":${form === "text" ? JSON.stringify(system) : list}`);
  }
  const tools = toolCatalog(state).offered.map(({ name, description, inputSchema }, i, all) => {
    const tool = JSON.stringify({ name, description, input_schema: inputSchema });
    return form === "marked" && i === all.length - 1 ? marked(tool) : tool;
  });
  if (tools.length > 0) pieces.push(`,"tools":[${tools.join(",")}]`);
  pieces.push(`,"messages":[`);
  return pieces;
}

function settings(state: SessionState, breakpoints: "automatic" | "explicit"): Piece[] {
  const { effort = null, speed = null, inferenceGeo = null } = state.agent?.model ?? {};
  const maxTokens = Math.min(
    LIMITS.answerTokens * 2 ** Math.min(state.truncatedAnswers, 8),
    LIMITS.answerTokensAtMost,
  );
  const pieces: Piece[] = [`,"max_tokens":${maxTokens},"stream":true`];
  // The API's own placement: it marks the end of the longest prefix that stays the same.
  if (breakpoints === "automatic") pieces.push(`,"cache_control":{"type":"ephemeral"}`);
  // What is the API's own default is left out: models that do not know the setting refuse it by name.
  if (effort && effort !== "high") pieces.push(`,"output_config":{"effort":${JSON.stringify(effort)}}`);
  if (speed && speed !== "standard") pieces.push(`,"speed":${JSON.stringify(speed)}`);
  if (inferenceGeo) pieces.push(`,"inference_geo":${JSON.stringify(inferenceGeo)}`);
  return pieces;
}

function model(state: SessionState): string {
  return JSON.stringify(state.agent?.model.id);
}

function concat(pieces: readonly Piece[]): Buffer {
  return Buffer.concat(pieces.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece)));
}
