import assert from "node:assert/strict";
import { GanglionError } from "../../../../services/common/errors/ganglion-error.ts";
import { loadContracts } from "../../../../services/common/grpc/contracts.ts";
import { roleName } from "../../../../services/common/grpc/principal.ts";
import { Role } from "../../../../services/gen/ganglion/types/v1/access.ts";
import type { Caller, SessionKit } from "../session-kit.ts";

const IMAGE = new URL("../../../../services/gen/image.binpb", import.meta.url).pathname;
const SERVICES: Record<string, keyof Caller> = {
  "ganglion.session.v1.SessionService": "session",
  "ganglion.agent.v1.AgentService": "agents",
  "ganglion.agent.v1.EnvironmentService": "environments",
  "ganglion.agent.v1.ApiKeyService": "apiKeys",
};

/** Every role against every method, as the options in the protos say. */
export function accessSuite(kit: () => SessionKit): void {
  describe("who may call what", () => {
    const callers = new Map<Role, Caller>();
    before(async () => {
      for (const role of Object.values(Role)) {
        if (role === Role.ROLE_UNSPECIFIED) continue;
        const service = roleName(role).replace("_", "-");
        callers.set(role, role === Role.ROLE_CLIENT ? await kit().asClient() : await kit().as(service));
      }
    });

    const methods = [...loadContracts(IMAGE).methods.values()].filter(({ service }) => service in SERVICES);
    for (const method of methods) {
      it(`${method.method} is open to its callers and to nobody else`, async () => {
        for (const [role, caller] of callers) {
          const reason = await reasonOf(caller, method.service, method.method);
          const isAllowed = method.access?.callers.has(role) ?? false;
          assert.equal(reason !== "ROLE_NOT_ALLOWED", isAllowed, `${roleName(role)}: ${reason}`);
        }
      });
    }

    it("names every method of the four services", () => {
      assert.equal(methods.length, 22 + 6 + 6 + 4);
    });

    it("a client certificate that comes directly may call nothing", async () => {
      const direct = await kit().as("client");
      assert.equal(
        await reasonOf(direct, "ganglion.session.v1.SessionService", "GetSession"),
        "ROLE_NOT_ALLOWED",
      );
    });
  });
}

// What a call with an empty request is refused with; "" when it was not.
async function reasonOf(caller: Caller, service: string, method: string): Promise<string> {
  const client = caller[SERVICES[service] as keyof Caller] as unknown as Record<
    string,
    (request: unknown) => unknown
  >;
  const call = client[`${method[0]?.toLowerCase()}${method.slice(1)}`];
  assert.ok(call);
  try {
    const request = STREAMS_IN.has(method) ? [] : EMPTY;
    const answer = call(request);
    if (isIterable(answer)) await answer[Symbol.asyncIterator]().next();
    else await answer;
    return "";
  } catch (error) {
    assert.ok(error instanceof GanglionError, String(error));
    return error.reason;
  }
}

const STREAMS_IN = new Set(["PublishPreviews", "PutPayload"]);

// Every field of every request, empty.
const EMPTY = new Proxy(
  {},
  {
    get: (_target, name) => {
      const text = String(name);
      if (/Ids$|^types$|^events$|^initialEvents$|^statuses$|^metadataRemove$/.test(text)) return [];
      if (/^metadata(Set)?$/.test(text)) return {};
      if (/^position$|^offsetBytes$/.test(text)) return 0n;
      if (/Position$/.test(text) && text !== "expectedPosition" && text !== "settledPosition") return 0n;
      if (text === "epoch") return 0n;
      if (/Json$|Sha256$|^data$/.test(text)) return new Uint8Array();
      if (
        /^(limit|maxBytes|order|aroundCount|pageSize|agentVersion|version|expectedVersion|activeSessions)$/.test(
          text,
        )
      )
        return 0;
      if (/^(include|from|is|remove)[A-Z]/.test(text)) return false;
      if (/^created|Position$|^title$|^requestedBy$|^budget$/.test(text)) return undefined;
      return "";
    },
  },
);

function isIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}
