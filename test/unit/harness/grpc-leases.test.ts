import assert from "node:assert/strict";
import { createGrpcLeases } from "../../../services/harness/clients/grpc-leases.ts";
import type { SessionClient } from "../../../services/harness/clients/service-clients.ts";
import { unreachable } from "./fakes/scripted-parts.ts";

/** A session service that grants everything and whose answers are lost as long as the test says. */
function lossy(lost: { count: number }): { client: SessionClient; asked: string[] } {
  const asked: string[] = [];
  const acquireLease = async ({ requestId }: { requestId: string }) => {
    asked.push(requestId);
    if (lost.count-- > 0) throw unreachable();
    return { lease: { sessionId: "sesn_1", workspaceId: "wrkspc_default", epoch: 1n, headPosition: 2n } };
  };
  return { client: { acquireLease } as unknown as SessionClient, asked };
}

describe("leases over gRPC", () => {
  it("ask again with the same id: a lost answer must leave no session held by nobody's run [B135]", async () => {
    const { client, asked } = lossy({ count: 1 });
    const lease = await createGrpcLeases(client).acquire();
    assert.equal(lease?.sessionId, "sesn_1");
    assert.equal(new Set(asked).size, 1);
  });

  it("ask for what was never answered before anything else, however much later that is [B135]", async () => {
    const { client, asked } = lossy({ count: 3 });
    const leases = createGrpcLeases(client);
    await assert.rejects(leases.acquire(), { reason: "UNREACHABLE" });
    assert.equal((await leases.acquire())?.epoch, 1n);
    assert.equal(new Set(asked).size, 1);
    await leases.acquire();
    assert.equal(new Set(asked).size, 2);
  });

  it("ask for a named session that was never answered with the next look for work", async () => {
    const { client, asked } = lossy({ count: 2 });
    const leases = createGrpcLeases(client);
    await assert.rejects(leases.acquire("sesn_1"), { reason: "UNREACHABLE" });
    await leases.acquire();
    assert.equal(new Set(asked).size, 1);
  });
});
