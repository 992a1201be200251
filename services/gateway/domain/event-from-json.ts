import type { ContentBlock } from "../../gen/ganglion/types/v1/content.ts";
import type { Event } from "../../gen/ganglion/types/v1/event.ts";
import { asObject, invalid, notYet, refuseUnknown, requiredText } from "./refuse.ts";

type Body = NonNullable<Event["body"]>;
type Fields = Record<string, unknown>;

const RESULT_ALLOW = 1;
const RESULT_DENY = 2;
const MAX_EVENTS = 100;

const READERS: Record<string, (fields: Fields, at: string) => Body> = {
  "user.message": (fields, at) => {
    known(fields, at, ["content"]);
    return { $case: "userMessage", value: { content: content(fields.content, at, true) } };
  },
  "user.interrupt": (fields, at) => {
    known(fields, at, []);
    return { $case: "userInterrupt", value: { sessionThreadId: "" } };
  },
  "user.tool_confirmation": (fields, at) => {
    known(fields, at, ["tool_use_id", "result", "deny_message"]);
    const result =
      fields.result === "allow" ? RESULT_ALLOW : fields.result === "deny" ? RESULT_DENY : undefined;
    if (!result) throw invalid(`${at}.result`, "must be allow or deny");
    const { deny_message: message } = fields;
    if (message !== undefined && message !== null && typeof message !== "string") {
      throw invalid(`${at}.deny_message`, "must be a string");
    }
    const toolUseId = requiredText(fields.tool_use_id, `${at}.tool_use_id`);
    return { $case: "userToolConfirmation", value: { toolUseId, result, denyMessage: message ?? undefined } };
  },
  "user.custom_tool_result": (fields, at) => {
    known(fields, at, ["custom_tool_use_id", "content", "is_error"]);
    const customToolUseId = requiredText(fields.custom_tool_use_id, `${at}.custom_tool_use_id`);
    return { $case: "userCustomToolResult", value: { customToolUseId, ...result(fields, at) } };
  },
  "user.tool_result": (fields, at) => {
    known(fields, at, ["tool_use_id", "content", "is_error"]);
    const toolUseId = requiredText(fields.tool_use_id, `${at}.tool_use_id`);
    return { $case: "userToolResult", value: { toolUseId, ...result(fields, at) } };
  },
  "user.define_outcome": (_fields, at) => {
    throw notYet(`${at} (user.define_outcome)`);
  },
  "system.message": (_fields, at) => {
    throw notYet(`${at} (system.message)`);
  },
};

/** eventsFromJson reads the `events` of a request; `mintId` gives each an id, so that a repeated append is one. */
export function eventsFromJson(value: unknown, name: string, mintId: () => string): Event[] {
  if (!Array.isArray(value) || value.length === 0)
    throw invalid(name, "must be a list with at least one event");
  if (value.length > MAX_EVENTS) throw invalid(name, `must have at most ${MAX_EVENTS} events`);
  return value.map((item, index) => {
    const at = `${name}[${index}]`;
    const fields = asObject(item, at);
    const type = requiredText(fields.type, `${at}.type`);
    const read = Object.hasOwn(READERS, type) ? READERS[type] : undefined;
    if (!read) throw invalid(`${at}.type`, "is no event that a client may send");
    return {
      id: mintId(),
      position: 0n,
      createTime: undefined,
      type: "",
      actor: undefined,
      threadId: "",
      epoch: 0n,
      traceparent: "",
      mayIgnore: false,
      body: read(fields, at),
    };
  });
}

function known(fields: Fields, at: string, names: readonly string[]): void {
  if (fields.session_thread_id) throw notYet(`${at}.session_thread_id`);
  refuseUnknown(fields, ["type", "session_thread_id", ...names], `${at}.`);
}

function result(fields: Fields, at: string): { content: ContentBlock[]; isError: boolean | undefined } {
  const { is_error: isError } = fields;
  if (isError !== undefined && isError !== null && typeof isError !== "boolean") {
    throw invalid(`${at}.is_error`, "must be true or false");
  }
  return { content: content(fields.content, at, false), isError: isError ?? undefined };
}

function content(value: unknown, at: string, isRequired: boolean): ContentBlock[] {
  if (!isRequired && (value === undefined || value === null)) return [];
  // Older clients send a bare string.
  const items = typeof value === "string" ? [{ type: "text", text: value }] : value;
  if (!Array.isArray(items)) throw invalid(`${at}.content`, "must be a list of blocks");
  return items.map((item, index) => {
    const block = asObject(item, `${at}.content[${index}]`);
    const type = requiredText(block.type, `${at}.content[${index}].type`);
    if (type === "redacted")
      throw invalid(`${at}.content[${index}].type`, "redacted blocks come from the server only");
    if (usesFile(block)) throw notYet(`${at}.content[${index}].source (file)`);
    return { type, data: { $case: "json", value: Buffer.from(JSON.stringify(block)) } };
  });
}

function usesFile(block: Fields): boolean {
  const source = block.source as { type?: unknown } | null | undefined;
  return typeof source === "object" && source !== null && source.type === "file";
}
