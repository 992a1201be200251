import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { GanglionError } from "../../../../services/common/errors/ganglion-error.ts";
import { GetEventsRequest } from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import {
  emit,
  event,
  idle,
  refused,
  refusedField,
  running,
  type SessionKit,
  same,
  userMessage,
} from "../session-kit.ts";
import { Suite } from "../suite.ts";

const TTL_MS = 1_500;

/** Who drives a session. */
export function leasesSuite(kit: () => SessionKit): void {
  describe("leases", () => {
    const suite = new Suite(kit, "leases");
    beforeEach(async () => {
      // What other tests left to do would be leased first.
      await kit().sql("ganglion_owner", "UPDATE session.sessions SET runnable = false");
    });

    let count = 0;
    const harness = async (name = `harness-l${++count}`) => {
      const caller = await kit().as("harness", name);
      const bootId = `boot-${name}-000000000`.slice(0, 32);
      const beat = (boot = bootId) =>
        caller.session.harnessHeartbeat({ bootId: boot, activeSessions: 0, isDraining: false });
      const acquire = async (sessionId = "", boot = bootId, requestId?: string) =>
        (await caller.session.acquireLease({ sessionId, bootId: boot, requestId })).lease;
      const release = (sessionId: string, epoch: bigint, settledPosition?: bigint) =>
        caller.session.releaseLease({ sessionId, epoch, settledPosition });
      await beat();
      return { caller, beat, acquire, release, bootId, spiffe: `spiffe://ganglion.local/harness/${name}` };
    };
    const leaseEvents = async (sessionId: string) => {
      const { events } = await suite.client.session.getEvents(
        GetEventsRequest.fromPartial({ sessionId, types: ["ganglion.lease_acquired"] }),
      );
      return events.map(({ body }) => (body?.$case === "ganglionLeaseAcquired" ? body.value : undefined));
    };

    it("a heartbeat says how long it lasts", async () => {
      const { beat } = await harness();
      same((await beat()).timeToLive, { seconds: 1n, nanos: 500_000_000 });
    });

    it("a lease raises the epoch, is in the log, and lifts the fence to it", async () => {
      const { id } = await suite.create({ initialEvents: [userMessage("x")] });
      const { acquire, spiffe } = await harness();
      const lease = await acquire();
      same(
        [
          lease?.sessionId,
          lease?.epoch,
          lease?.owner,
          lease?.headPosition,
          lease?.isOwnerAlive,
          lease?.workspaceId,
        ],
        [id, 1n, spiffe, 4n, true, "wrkspc_default"],
      );
      same(await leaseEvents(id), [{ owner: spiffe, epoch: 1n, isTakeover: false }]);
      same(await kit().fenceOf(id), { lowest_epoch: "1", ended: false });
      const { lease: seen } = await (await kit().as("mcp-proxy")).session.getLease({ sessionId: id });
      same(seen, lease);
    });

    it("there is no lease without a heartbeat of this boot", async () => {
      const caller = await kit().as("harness", "harness-silent");
      const request = { sessionId: "", bootId: "boot-of-a-silent-one" };
      const required = refused("FAILED_PRECONDITION", "HEARTBEAT_REQUIRED");
      await assert.rejects(caller.session.acquireLease(request), required);
      const { acquire } = await harness();
      await assert.rejects(acquire("", "boot-of-another-run-1"), required);
    });

    it("nothing runnable is an answer without a lease", async () => {
      await suite.create();
      const { acquire } = await harness();
      assert.equal(await acquire(), undefined);
    });

    it("of many harnesses at once exactly one gets each session [B149]", async () => {
      const sessions = await Promise.all(
        Array.from({ length: 4 }, () => suite.create({ initialEvents: [userMessage("x")] })),
      );
      const harnesses = await Promise.all(Array.from({ length: 8 }, () => harness()));
      const leases = (await Promise.all(harnesses.map(({ acquire }) => acquire()))).filter(
        (lease) => lease !== undefined,
      );
      same(leases.map(({ sessionId }) => sessionId).sort(), sessions.map(({ id }) => id).sort());
      assert.ok(leases.every(({ epoch }) => epoch === 1n));
    });

    it("of two that name one session one is told who holds it [B149]", async () => {
      const { id } = await suite.create();
      const [a, b] = await Promise.all([harness(), harness()]);
      const results = await Promise.allSettled([a.acquire(id), b.acquire(id)]);
      const lost = results.find((result) => result.status === "rejected");
      const won = results.find((result) => result.status === "fulfilled");
      refused("FAILED_PRECONDITION", "LEASE_HELD")(lost?.reason);
      same(lost?.reason.metadata, { owner: won?.value?.owner, epoch: "1" });
    });

    it("a holder that asks again is given a new epoch", async () => {
      const { id } = await suite.create();
      const { acquire, caller } = await harness();
      const first = await acquire(id);
      const second = await acquire(id);
      assert.equal(second?.epoch, 2n);
      await assert.rejects(
        emit(caller, id, [running()], { epoch: first?.epoch }),
        refused("FAILED_PRECONDITION", "STALE_EPOCH"),
      );
      await emit(caller, id, [running()], { epoch: second?.epoch });
    });

    it("a request for a lease that is repeated gets the lease it got, while that lasts", async () => {
      const first = await suite.create({ initialEvents: [userMessage("x")] });
      await suite.create({ initialEvents: [userMessage("y")] });
      const { acquire, release } = await harness();
      const lease = await acquire("", undefined, "request-1");
      assert.equal(lease?.sessionId, first.id);
      same(await acquire("", undefined, "request-1"), lease);
      assert.notEqual((await acquire("", undefined, "request-2"))?.sessionId, first.id);
      await release(first.id, lease?.epoch ?? 0n);
      assert.equal((await acquire("", undefined, "request-1"))?.epoch, 2n);
    });

    it("a request for a lease that comes several times at once gets one session [B135]", async () => {
      for (const _ of Array(8)) await suite.create({ initialEvents: [userMessage("x")] });
      const { acquire } = await harness();
      for (const request of ["once-1", "once-2", "once-3"]) {
        const given = await Promise.all(Array.from({ length: 6 }, () => acquire("", undefined, request)));
        assert.equal(new Set(given.map((lease) => lease?.sessionId)).size, 1);
        assert.equal(new Set(given.map((lease) => lease?.epoch)).size, 1);
      }
    });

    it("a lease brings the beginning of what its holder has to read, when asked to", async () => {
      const { id } = await suite.create({ initialEvents: [userMessage("x")] });
      const { caller, release, bootId } = await harness();
      const ask = async (checkpointFormat?: string, requestId?: string) =>
        caller.session.acquireLease({ sessionId: id, bootId, checkpointFormat, requestId });
      const log = async (afterPosition = 0n) =>
        (await caller.session.getEvents(GetEventsRequest.fromPartial({ sessionId: id, afterPosition })))
          .events;
      assert.equal((await ask()).logStart, undefined);
      const { lease, logStart } = await ask("fold/1", "request-1");
      same(
        [logStart?.checkpointPosition, logStart?.checkpointData.length, logStart?.hasMore],
        [0n, 0, false],
      );
      same(logStart?.events, await log());
      assert.equal(logStart?.events.at(-1)?.position, lease?.headPosition);
      // What was given once is given again, and read by itself.
      same(await ask("fold/1", "request-1"), { lease, logStart: undefined });
      const checkpoint = { format: "fold/1", position: 3n, data: Buffer.from("three") };
      await caller.session.putCheckpoint({ sessionId: id, epoch: lease?.epoch ?? 0n, ...checkpoint });
      await release(id, lease?.epoch ?? 0n);
      const { logStart: later } = await ask("fold/1");
      same([later?.checkpointPosition, later?.checkpointData.toString()], [3n, "three"]);
      same([later?.events, later?.hasMore], [await log(3n), false]);
      assert.equal((await ask("fold/2")).logStart?.checkpointPosition, 0n);
    });

    it("the beginning of a long log says that there is more, without a hole", async () => {
      const { id } = await suite.create();
      const text = "x".repeat(300 << 10);
      for (let n = 0; n < 5; n++) await emit(suite.client, id, [userMessage(text)]);
      const { caller, bootId } = await harness();
      const { lease, logStart } = await caller.session.acquireLease({
        sessionId: id,
        bootId,
        checkpointFormat: "fold/1",
      });
      assert.equal(logStart?.hasMore, true);
      const positions = logStart.events.map(({ position }) => position);
      same(positions, [1n, 2n, 3n, 4n]);
      assert.equal(lease?.headPosition, 7n);
    });

    it("beside the largest checkpoint there is no room for events: they are read on from it", async () => {
      const { id } = await suite.create({ initialEvents: [userMessage("x")] });
      const { caller, acquire, release, bootId } = await harness();
      const epoch = (await acquire(id))?.epoch ?? 0n;
      const checkpoint = { format: "fold/1", position: 2n, data: randomBytes(3 << 20) };
      await caller.session.putCheckpoint({ sessionId: id, epoch, ...checkpoint });
      await release(id, epoch);
      const asked = { sessionId: id, bootId, checkpointFormat: "fold/1" };
      const { logStart } = await caller.session.acquireLease(asked);
      assert.ok(logStart && checkpoint.data.equals(logStart.checkpointData));
      same([logStart.checkpointPosition, logStart.events, logStart.hasMore], [2n, [], true]);
    });

    it("any runnable session is never one's own live one", async () => {
      await suite.create({ initialEvents: [userMessage("x")] });
      const { acquire } = await harness();
      assert.ok(await acquire());
      assert.equal(await acquire(), undefined);
    });

    it("a session whose holder stopped beating is announced and taken over, and the old tokens die", async () => {
      const { id } = await suite.create({ initialEvents: [userMessage("x")] });
      const dead = await harness();
      const first = await dead.acquire();
      assert.equal(first?.sessionId, id);
      const survivor = await harness();
      const hints = survivor.caller.session.watchRunnable({});
      const beating = setInterval(() => void survivor.beat().catch(() => {}), TTL_MS / 4);
      try {
        const began = performance.now();
        for await (const { runnableCount } of hints) if (runnableCount > 0) break;
        const taken = await survivor.acquire();
        const tookMs = performance.now() - began;
        same([taken?.sessionId, taken?.epoch], [id, 2n]);
        assert.ok(tookMs < TTL_MS + 1_000 + 1_500, `${Math.round(tookMs)} ms`);
      } finally {
        clearInterval(beating);
      }
      same(
        (await leaseEvents(id)).map((body) => body?.isTakeover),
        [false, true],
      );
      same(await kit().fenceOf(id), { lowest_epoch: "2", ended: false });
      await dead.beat();
      await assert.rejects(
        emit(dead.caller, id, [running()], { epoch: first?.epoch }),
        refused("FAILED_PRECONDITION", "STALE_EPOCH"),
      );
    }).timeout(20_000);

    it("a new boot of an instance frees what the old one held, at once", async () => {
      const { id } = await suite.create({ initialEvents: [userMessage("x")] });
      const restarted = await harness();
      await restarted.acquire();
      await restarted.beat("boot-after-a-restart-1");
      const { lease } = await (await kit().as("operator")).session.getLease({ sessionId: id });
      same([lease?.owner, lease?.isOwnerAlive], ["", false]);
      same(await kit().fenceOf(id), { lowest_epoch: "2", ended: false });
      const { acquire } = await harness();
      same([(await acquire())?.epoch, (await leaseEvents(id)).at(-1)?.isTakeover], [2n, true]);
    });

    it("a released session is leased again, its tokens are dead, and releasing twice is fine", async () => {
      const { id } = await suite.create({ initialEvents: [userMessage("x")] });
      const { acquire, release } = await harness();
      await acquire();
      const { caller } = await harness();
      const hints = caller.session.watchRunnable({});
      same((await hints.next()).value, { runnableCount: 0 });
      await release(id, 1n);
      same((await hints.next()).value, { runnableCount: 1 });
      await hints.return();
      await release(id, 1n);
      same(await kit().fenceOf(id), { lowest_epoch: "2", ended: false });
      const again = await harness();
      assert.equal((await again.acquire())?.epoch, 2n);
      // The epoch that is over does not release the new one.
      await release(id, 1n);
      assert.equal((await again.caller.session.getLease({ sessionId: id })).lease?.owner, again.spiffe);
      await assert.rejects(release("sesn_none", 1n), refused("NOT_FOUND", "SESSION_NOT_FOUND"));
    });

    it("input that changes nothing is settled at release, and input behind it is not", async () => {
      const { id } = await suite.create();
      await emit(suite.client, id, [event({ $case: "userInterrupt", value: { sessionThreadId: "" } })]);
      const { acquire, release } = await harness();
      const lease = await acquire();
      assert.equal(lease?.sessionId, id);
      await release(id, lease.epoch, lease.headPosition);
      assert.equal(await acquire(), undefined);
      await emit(suite.client, id, [event({ $case: "userInterrupt", value: { sessionThreadId: "" } })]);
      const again = await acquire();
      await emit(suite.client, id, [userMessage("behind")]);
      await release(id, again?.epoch ?? 0n, again?.headPosition);
      assert.equal((await acquire())?.sessionId, id);
    });

    it("going idle ends the need for a brain until new input comes", async () => {
      const { id } = await suite.create({ initialEvents: [userMessage("x")] });
      const { acquire, release, caller } = await harness();
      const lease = await acquire();
      await emit(caller, id, [idle()], { epoch: lease?.epoch, expectedPosition: lease?.headPosition });
      await release(id, lease?.epoch ?? 0n);
      assert.equal(await acquire(), undefined);
      await emit(suite.client, id, [userMessage("more")]);
      assert.equal((await acquire())?.epoch, 2n);
    });

    it("an ended session cannot be leased", async () => {
      const { id } = await suite.create();
      await suite.client.session.archiveSession({ sessionId: id });
      const { acquire } = await harness();
      await assert.rejects(acquire(id), refused("FAILED_PRECONDITION", "SESSION_ENDED"));
      await assert.rejects(acquire("sesn_none"), refused("NOT_FOUND", "SESSION_NOT_FOUND"));
    });

    it("new work is announced at once", async () => {
      const { caller } = await harness();
      const hints = caller.session.watchRunnable({});
      same((await hints.next()).value, { runnableCount: 0 });
      const { id } = await suite.create();
      await emit(suite.client, id, [userMessage("x")]);
      same((await hints.next()).value, { runnableCount: 1 });
      await hints.return();
    });

    it("without the fence there is no lease, no release and no end", async () => {
      const { id } = await suite.create({ initialEvents: [userMessage("x")] });
      const { id: idleId } = await suite.create();
      const { acquire, release } = await harness();
      const lease = await acquire(idleId);
      await kit().sql("ganglion_owner", "ALTER FUNCTION proxy.raise_fence RENAME TO gone");
      const unavailable = refused("UNAVAILABLE", "FENCE_UNAVAILABLE");
      try {
        await assert.rejects(acquire(id), unavailable);
        await assert.rejects(release(idleId, lease?.epoch ?? 0n), unavailable);
        await assert.rejects(suite.client.session.archiveSession({ sessionId: idleId }), unavailable);
        await assert.rejects(
          suite.client.session.deleteSession({ sessionId: idleId }),
          (error: GanglionError) => {
            assert.ok(error.retryAfterMs);
            return unavailable(error);
          },
        );
      } finally {
        await kit().sql("ganglion_owner", "ALTER FUNCTION proxy.gone RENAME TO raise_fence");
      }
      const { lease: unchanged } = await (await kit().as("operator")).session.getLease({ sessionId: id });
      same([unchanged?.epoch, unchanged?.headPosition], [0n, 3n]);
    });

    it("names what is wrong with a request", async () => {
      const { caller } = await harness();
      const { session } = caller;
      const short = { bootId: "short", activeSessions: 0, isDraining: false };
      await assert.rejects(session.harnessHeartbeat(short), refusedField("boot_id"));
      await assert.rejects(
        session.harnessHeartbeat({ ...short, bootId: "long-enough-boot-id", activeSessions: -1 }),
        refusedField("active_sessions"),
      );
      await assert.rejects(
        session.acquireLease({ sessionId: "", bootId: "", requestId: undefined }),
        refusedField("boot_id"),
      );
      await assert.rejects(
        session.acquireLease({ sessionId: "a b", bootId: "long-enough-boot-id" }),
        refusedField("session_id"),
      );
      await assert.rejects(
        session.acquireLease({ sessionId: "", bootId: "long-enough-boot-id", checkpointFormat: "a b" }),
        refusedField("checkpoint_format"),
      );
      await assert.rejects(
        session.releaseLease({ sessionId: "", epoch: 1n, settledPosition: undefined }),
        refusedField("session_id"),
      );
      await assert.rejects(
        session.releaseLease({ sessionId: "x", epoch: 0n, settledPosition: 0n }),
        refusedField("settled_position"),
      );
      await assert.rejects(session.getLease({ sessionId: "" }), refusedField("session_id"));
    });
  });
}
