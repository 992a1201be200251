import type { OfferedTool } from "./built-in-tools.ts";
import type { Call } from "./session-state.ts";

/** Name of the tool with which the model reads its own log. */
export const SESSION_LOG = "session_log";

/** True for a call that the brain answers itself, from the log. */
export function readsLog(call: Pick<Call, "kind" | "name">): boolean {
  return call.kind === "built-in" && call.name === SESSION_LOG;
}

/** The tool as the model is offered it. It has no effect, so it may be run again (law L4). */
export const SESSION_LOG_TOOL: OfferedTool = {
  name: SESSION_LOG,
  description:
    "Reads this session's own log: everything said, every call and every result, also what is no longer in view because " +
    "it was summarised, trimmed or cut. Each entry has a position; entries come with their positions. Results shown to " +
    "you as cut can be read in full: ask for the one position with limit 1 and go on with text_offset.",
  inputSchema: {
    type: "object",
    properties: {
      after_position: { type: "integer", description: "Only entries after this position." },
      before_position: { type: "integer", description: "Only entries before this position." },
      around_event_id: { type: "string", description: "The entries around this event." },
      types: {
        type: "array",
        items: { type: "string" },
        description:
          "Only these types, for example user.message, agent.message, agent.tool_use, agent.tool_result.",
      },
      text: { type: "string", description: "Only entries that contain this text, whatever its case." },
      order: {
        type: "string",
        enum: ["oldest_first", "newest_first"],
        description: "oldest_first unless given.",
      },
      limit: { type: "integer", description: "Most entries to give, 1 to 100; 20 unless given." },
      text_offset: { type: "integer", description: "Skip so many characters of each entry's text." },
    },
  },
};

/** What the model asks its log for. */
export interface LogQuery {
  afterPosition: bigint;
  /** 0 = up to the end. */
  beforePosition: bigint;
  aroundEventId: string;
  types: readonly string[];
  text: string;
  isNewestFirst: boolean;
  limit: number;
  textOffset: number;
}

/** Reads a call's input; a string = what is wrong with it, for the model. */
export function parseLogQuery(inputJson: Uint8Array): LogQuery | string {
  const input = JSON.parse(new TextDecoder().decode(inputJson)) as Record<string, unknown>;
  const unknown = Object.keys(input).filter((name) => !NAMES.has(name));
  if (unknown.length > 0)
    return `There is no input ${JSON.stringify(unknown[0])}. There are: ${[...NAMES].join(", ")}.`;
  const numbers = {
    after_position: wholeNumber(input.after_position, 0, Number.MAX_SAFE_INTEGER, 0),
    before_position: wholeNumber(input.before_position, 0, Number.MAX_SAFE_INTEGER, 0),
    limit: wholeNumber(input.limit, 1, 100, 20),
    text_offset: wholeNumber(input.text_offset, 0, Number.MAX_SAFE_INTEGER, 0),
  };
  for (const [name, value] of Object.entries(numbers)) {
    if (value === undefined) return `${name} must be a whole number in its range.`;
  }
  const { around_event_id: around = "", text = "", types = [], order = "oldest_first" } = input;
  if (typeof around !== "string" || !/^[A-Za-z0-9_-]{0,64}$/.test(around))
    return "around_event_id must be an event's id.";
  if (typeof text !== "string" || text.length > 1000)
    return "text must be a string of at most 1000 characters.";
  if (
    !Array.isArray(types) ||
    types.length > 20 ||
    !types.every((type) => typeof type === "string" && TYPE.test(type))
  )
    return "types must be a list of at most 20 event types.";
  if (order !== "oldest_first" && order !== "newest_first")
    return "order must be oldest_first or newest_first.";
  return {
    afterPosition: BigInt(numbers.after_position ?? 0),
    beforePosition: BigInt(numbers.before_position ?? 0),
    aroundEventId: around,
    types: types as string[],
    text,
    isNewestFirst: order === "newest_first",
    limit: numbers.limit ?? 20,
    textOffset: numbers.text_offset ?? 0,
  };
}

const TYPE = /^[a-z0-9_.]{3,64}$/;
const NAMES = new Set([
  "after_position",
  "before_position",
  "around_event_id",
  "types",
  "text",
  "order",
  "limit",
  "text_offset",
]);

// Models write positions as text now and then.
function wholeNumber(value: unknown, min: number, max: number, fallback: number): number | undefined {
  if (value === undefined || value === null) return fallback;
  const number = typeof value === "string" && /^\d{1,16}$/.test(value) ? Number(value) : value;
  if (typeof number !== "number" || !Number.isSafeInteger(number)) return undefined;
  return number >= min && number <= max ? number : undefined;
}
