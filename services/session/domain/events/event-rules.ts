import { GanglionError } from "../../../common/errors/ganglion-error.ts";
import type { Event } from "../../../gen/ganglion/types/v1/event.ts";
import type { CallerRole } from "../caller.ts";

/** Name of a body's case, for example "userMessage". */
export type BodyCase = NonNullable<Event["body"]>["$case"];

/** How an event type behaves, as the option on its field in the protos says. */
export interface EventRule {
  readonly bodyCase: BodyCase;
  /** Name of the field in the proto. */
  readonly field: string;
  /** Dotted type; "*" for the open form. */
  readonly type: string;
  readonly emitters: ReadonlySet<CallerRole>;
}

/** All rules by case. */
export type EventRules = ReadonlyMap<string, EventRule>;

// Known from the start so that logs and stubs need not change, refused until they work.
const NOT_WORKING_YET: ReadonlySet<string> = new Set<BodyCase>([
  "userDefineOutcome",
  "systemMessage",
  "userToolResult",
]);

const OPEN_TYPE = /^[a-z0-9_]+(\.[a-z0-9_]+)*$/;
const RESERVED = ["user.", "system.", "session.", "ganglion."];

/**
 * typeForEmitter is the type of the event that this caller may append, or throws why it may not (law L3). Whether the
 * caller may append at all comes before anything the event says.
 */
export function typeForEmitter(
  rules: EventRules,
  role: CallerRole,
  body: NonNullable<Event["body"]>,
): string {
  const rule = rules.get(body.$case);
  if (!rule?.emitters.has(role)) throw notAllowed(rule?.type ?? body.$case);
  if (NOT_WORKING_YET.has(body.$case)) throw notSupported(rule.type);
  return body.$case === "open" ? body.value.type : rule.type;
}

/** What is wrong with the type of an open event; undefined = nothing. */
export function openTypeFault(rules: EventRules, type: string): string | undefined {
  if (type.length < 3 || type.length > 64 || !OPEN_TYPE.test(type)) {
    return "must be a dotted name of 3 to 64 characters a-z, 0-9, _";
  }
  if (RESERVED.some((prefix) => type.startsWith(prefix))) return "must not begin with a reserved word";
  for (const rule of rules.values()) if (rule.type === type) return "is a known type and has its own message";
  return undefined;
}

function notAllowed(type: string): GanglionError {
  return new GanglionError({
    code: "PERMISSION_DENIED",
    reason: "EVENT_TYPE_NOT_ALLOWED",
    message: `the caller may not append ${type}`,
    metadata: { type },
  });
}

function notSupported(type: string): GanglionError {
  return new GanglionError({
    code: "INVALID_ARGUMENT",
    reason: "EVENT_TYPE_NOT_SUPPORTED",
    message: `${type} does not work yet`,
    metadata: { type },
  });
}
