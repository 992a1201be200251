import assert from "node:assert/strict";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
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

  it("ask again also after a refusal that follows a silence: what was asked before may have been granted [B135]", async () => {
    const { client, asked } = lossy({ count: 1 });
    const { acquireLease } = client;
    const refusal = new GanglionError({
      code: "FAILED_PRECONDITION",
      reason: "HEARTBEAT_REQUIRED",
      message: "beat first",
    });
    let refusals = 0;
    const late = async (...given: Parameters<typeof acquireLease>) => {
      if (asked.length > 0 && refusals++ < 2) throw refusal;
      return acquireLease(...given);
    };
    const leases = createGrpcLeases({ acquireLease: late } as unknown as SessionClient);
    await assert.rejects(leases.acquire(), { reason: "HEARTBEAT_REQUIRED" });
    await assert.rejects(leases.acquire(), { reason: "HEARTBEAT_REQUIRED" });
    assert.equal((await leases.acquire())?.epoch, 1n);
    assert.deepEqual([asked.length, new Set(asked).size], [2, 1]);
  });

  it("ask for a named session that was never answered with the next look for work", async () => {
    const { client, asked } = lossy({ count: 2 });
    const leases = createGrpcLeases(client);
    await assert.rejects(leases.acquire("sesn_1"), { reason: "UNREACHABLE" });
    await leases.acquire();
    assert.equal(new Set(asked).size, 1);
  });
});
