import assert from "node:assert/strict";
import { GanglionError } from "../../../../services/common/errors/ganglion-error.ts";
import { loadContracts } from "../../../../services/common/grpc/contracts.ts";
import { roleName } from "../../../../services/common/grpc/principal.ts";
import { Role } from "../../../../services/gen/ganglion/types/v1/access.ts";
import { Event } from "../../../../services/gen/ganglion/types/v1/event.ts";
import { loadEventRules } from "../../../../services/session/rpc/load-event-rules.ts";
import { type Caller, emit, makeFixture, type SessionKit } from "../session-kit.ts";

const IMAGE = new URL("../../../../services/gen/image.binpb", import.meta.url).pathname;
const NOT_YET = new Set(["user.tool_result", "user.define_outcome", "system.message"]);
const CALLERS = [Role.ROLE_CLIENT, Role.ROLE_OPERATOR, Role.ROLE_HARNESS];

/** Every role against every event type, as the options in the protos say (law L3). */
export function emittersSuite(kit: () => SessionKit): void {
  describe("who may append what", () => {
    const callers = new Map<Role, Caller>();
    let sessionId: string;
    let epoch: bigint | undefined;
    before(async () => {
      for (const role of Object.values(Role)) {
        if (role === Role.ROLE_UNSPECIFIED) continue;
        const service = roleName(role).replace("_", "-");
        callers.set(role, role === Role.ROLE_CLIENT ? await kit().asClient() : await kit().as(service));
      }
      const { create } = await makeFixture(callers.get(Role.ROLE_CLIENT) as Caller);
      ({ id: sessionId } = await create());
      const harness = callers.get(Role.ROLE_HARNESS) as Caller;
      const bootId = "boot-for-emitters-1";
      await harness.session.harnessHeartbeat({ bootId, activeSessions: 0, isDraining: false });
      epoch = (await harness.session.acquireLease({ sessionId, bootId })).lease?.epoch;
    });

    const rules = [...loadEventRules(loadContracts(IMAGE)).values()];
    for (const rule of rules) {
      it(`${rule.type} by its emitters only`, async () => {
        for (const [role, caller] of callers) {
          // A body with nothing in it: the permission is looked at before what the event says.
          const empty = Event.decode(
            Event.encode(Event.fromPartial({ body: emptyBody(rule.bodyCase) })).finish(),
          );
          const more = role === Role.ROLE_HARNESS ? { epoch } : {};
          const reason = await emit(caller, sessionId, [empty], more).then(
            () => "",
            (error) => (error instanceof GanglionError ? error.reason : String(error)),
          );
          const name = `${roleName(role)} gets ${reason || "OK"}`;
          if (!CALLERS.includes(role as never)) assert.equal(reason, "ROLE_NOT_ALLOWED", name);
          else if (!rule.emitters.has(roleName(role).toUpperCase() as never)) {
            assert.equal(reason, "EVENT_TYPE_NOT_ALLOWED", name);
          } else if (NOT_YET.has(rule.type)) assert.equal(reason, "EVENT_TYPE_NOT_SUPPORTED", name);
          else assert.ok(reason === "" || reason === "INVALID_FIELD", name);
        }
      });
    }

    it("covers every type of the proto", () => {
      assert.equal(rules.length, 53);
      assert.ok(rules.every(({ emitters }) => emitters.size > 0));
    });
  });
}

function emptyBody(bodyCase: string): Event["body"] {
  const body = { $case: bodyCase, value: {} };
  return Event.fromPartial({ body } as never).body;
}
