import { type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import type { Contracts } from "../../common/grpc/contracts.ts";
import { roleName } from "../../common/grpc/principal.ts";
import type { Role } from "../../gen/ganglion/types/v1/access.ts";
import type { CallerRole } from "../domain/caller.ts";
import type { BodyCase, EventRule, EventRules } from "../domain/events/event-rules.ts";

/**
 * loadEventRules reads who may append what from the (ganglion.types.v1.event_rule) options. A type without one, or
 * without emitters, may be appended by nobody.
 */
export function loadEventRules({ registry }: Contracts): EventRules {
  const event = registry.getMessage("ganglion.types.v1.Event");
  const option = registry.getExtension("ganglion.types.v1.event_rule");
  if (!event || !option) throw new Error("the image lacks ganglion.types.v1.Event or its event_rule");
  const rules = new Map<string, EventRule>();
  for (const field of bodyFields(event)) {
    if (!hasOption(field as never, option as never))
      throw new Error(`event type ${field.name} lacks its event_rule`);
    const rule = getOption(field as never, option as never) as unknown as { type: string; emitters: Role[] };
    rules.set(field.localName, {
      bodyCase: field.localName as BodyCase,
      field: field.name,
      type: rule.type,
      emitters: new Set(rule.emitters.map((role) => roleName(role).toUpperCase() as CallerRole)),
    });
  }
  return rules;
}

function bodyFields(event: DescMessage) {
  return event.oneofs.find(({ name }) => name === "body")?.fields ?? [];
}
