/** A content block of a reply. `rawInput` replaces the JSON of a tool's input on the wire, to send what a model never should. */
export type ReplyBlock =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thinking"; readonly thinking: string }
  | { readonly type: "redacted_thinking"; readonly data: string }
  | { readonly type: "tool_use"; readonly name: string; readonly input: object; readonly rawInput?: string }
  | { readonly type: "unknown"; readonly block: { readonly type: string } & Record<string, unknown> };

/** What goes wrong while a reply is sent. `after` counts content_block_delta frames. */
export type Fault =
  | { readonly kind: "status"; readonly status: number; readonly retryAfterSeconds?: number }
  | { readonly kind: "error-event"; readonly after: number; readonly errorType: string }
  | { readonly kind: "cut"; readonly after: number; readonly how: "end" | "fin" | "rst" }
  | { readonly kind: "stall"; readonly after: number };

/** What the scripted model answers to one request. */
export interface Reply {
  readonly blocks: readonly ReplyBlock[];
  readonly stopReason: string;
  readonly pace?: { readonly delayMs?: number; readonly chars?: number };
  readonly fault?: Fault;
}

/** say is a reply of one text that ends the turn. */
export function say(text: string): Reply {
  return { blocks: [{ type: "text", text }], stopReason: "end_turn" };
}

/** call is a reply that says something (or nothing) and asks for tools. */
export function call(text: string, ...calls: readonly { name: string; input: object }[]): Reply {
  const spoken = text === "" ? [] : [{ type: "text" as const, text }];
  return {
    blocks: [...spoken, ...calls.map((use) => ({ type: "tool_use" as const, ...use }))],
    stopReason: "tool_use",
  };
}
