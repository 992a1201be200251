import { findMember, isJsonObject, withMember } from "../../common/json/json-span.ts";
import type { AnswerBlock } from "../ports/model.ts";

// Block types whose input arrives as text; of these the client runs tool_use only.
const WITH_INPUT = new Set(["tool_use", "server_tool_use", "mcp_tool_use"]);

/**
 * Puts one block together from its start and its deltas without decoding and encoding what is in them: strings are
 * joined as they are written, escapes included, so that what is replayed is what was sent (B008).
 */
export class AnswerBlockBuilder {
  readonly index: number;
  readonly type: string;
  #isStopped = false;
  readonly #start: string;
  readonly #strings = new Map<string, string>();
  readonly #citations: string[] = [];
  #input = "";

  /** `json` is the content_block of a content_block_start, as written. */
  constructor(index: number, json: string) {
    this.index = index;
    this.#start = json;
    const { type } = JSON.parse(json) as { type?: unknown };
    this.type = typeof type === "string" ? type : "";
  }

  /** Text that is there before any delta. */
  get firstText(): string {
    const { text } = JSON.parse(this.#start) as { text?: unknown };
    return this.type === "text" && typeof text === "string" ? text : "";
  }

  /** Takes a delta, as written; answers with the text that it adds to a text block. Unknown kinds throw. */
  add(json: string): string {
    const delta = JSON.parse(json) as Record<string, unknown>;
    switch (delta.type) {
      case "text_delta":
        this.#append("text", json);
        return typeof delta.text === "string" ? delta.text : "";
      case "thinking_delta":
        this.#append("thinking", json);
        return "";
      case "signature_delta":
        this.#append("signature", json);
        return "";
      case "input_json_delta":
        this.#input += typeof delta.partial_json === "string" ? delta.partial_json : "";
        return "";
      case "citations_delta":
        this.#citations.push(slice(json, "citation"));
        return "";
      default:
        // Replaying a block without a part of it would be refused, or worse, accepted.
        throw new Error("unknown kind of delta");
    }
  }

  stop(): void {
    this.#isStopped = true;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  build(): AnswerBlock {
    let json = this.#start;
    for (const [name, more] of this.#strings) {
      const span = findMember(json, name);
      const before = span && json[span.start] === '"' ? json.slice(span.start + 1, span.end - 1) : "";
      json = withMember(json, name, `"${before}${more}"`);
    }
    if (this.#citations.length > 0) json = withMember(json, "citations", this.#allCitations(json));
    if (!WITH_INPUT.has(this.type)) return { index: this.index, type: this.type, json };

    const input = this.#input === "" ? slice(json, "input") || "{}" : this.#input;
    json = withMember(json, "input", isJsonObject(Buffer.from(input)) ? input : "{}");
    if (this.type !== "tool_use") return { index: this.index, type: this.type, json };
    const { id, name } = JSON.parse(json) as { id?: unknown; name?: unknown };
    const call = { providerCallId: text(id), name: text(name), inputJson: input };
    return { index: this.index, type: this.type, json, call };
  }

  #append(name: string, json: string): void {
    const written = slice(json, name);
    if (written[0] !== '"') return;
    this.#strings.set(name, (this.#strings.get(name) ?? "") + written.slice(1, -1));
  }

  #allCitations(json: string): string {
    const before = slice(json, "citations");
    const inner = before.startsWith("[") ? before.slice(1, -1).trim() : "";
    return `[${[...(inner === "" ? [] : [inner]), ...this.#citations].join(",")}]`;
  }
}

function slice(json: string, name: string): string {
  const span = findMember(json, name);
  return span ? json.slice(span.start, span.end) : "";
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
