import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import type { GanglionError } from "../../../../services/common/errors/ganglion-error.ts";
import {
  GetEventsRequest,
  UpdateSessionRequest,
  WatchEventsRequest,
} from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import { startCutProxy } from "../../../fakes/cut-proxy.ts";
import {
  type Caller,
  emit,
  makeFixture,
  refused,
  type SessionKit,
  same,
  userMessage,
} from "../session-kit.ts";

const unavailable = refused("UNAVAILABLE", "DATABASE_UNAVAILABLE");

/** The database goes away in every way it can; the service stays and nothing is lost or doubled. */
export function failuresSuite(kit: () => SessionKit): void {
  describe("failures of the database", () => {
    let client: Caller;
    let create: Awaited<ReturnType<typeof makeFixture>>["create"];
    before(async () => {
      client = await kit().asClient();
      ({ create } = await makeFixture(client));
    });

    // A connection of the owner that holds a lock until it is let go.
    const hold = async (text: string, values: unknown[]) => {
      const holder = new pg.Client(kit().postgres.connection("ganglion_owner"));
      holder.on("error", () => {});
      await holder.connect();
      await holder.query("BEGIN");
      await holder.query(text, values);
      return async () => {
        await holder.query("ROLLBACK");
        await holder.end();
      };
    };
    const holdRow = (sessionId: string) =>
      hold("SELECT 1 FROM session.sessions WHERE session_id = $1 FOR UPDATE", [sessionId]);
    // Backends of the service that wait for a lock; asked until there are as many as wanted.
    const blocked = async (count: number): Promise<number[]> => {
      for (;;) {
        const rows = await kit().sql(
          "ganglion_owner",
          "SELECT a.pid FROM pg_stat_activity a WHERE a.usename = 'ganglion_session' AND cardinality(pg_blocking_pids(a.pid)) > 0",
        );
        if (rows.length >= count) return rows.map(({ pid }) => pid);
        await delay(20);
      }
    };
    const terminate = async (pids: number[]) => {
      // The owner of the database may not end backends of other roles; the processes belong to the test's server.
      for (const pid of pids) process.kill(pid, "SIGTERM");
    };
    const headOf = async (sessionId: string) =>
      (await client.session.getEvents(GetEventsRequest.fromPartial({ sessionId }))).headPosition;

    it("a fork that takes long holds up nothing of its source but its removal", async () => {
      const [{ id }, other] = [await create(), await create()];
      const harness = await kit().as("harness", "harness-beside-a-fork");
      const bootId = "boot-for-failures-02";
      await harness.session.harnessHeartbeat({ bootId, activeSessions: 0, isDraining: false });
      // As a fork holds the row of its source.
      const letGo = await hold("SELECT 1 FROM session.sessions WHERE session_id = $1 FOR KEY SHARE", [id]);
      try {
        // So many at once that most of them share statements.
        await Promise.all(
          Array.from({ length: 40 }, (_, n) =>
            emit(client, n % 2 === 0 ? id : other.id, [userMessage(`${n}`)]),
          ),
        );
        await harness.session.acquireLease({ sessionId: id, bootId });
        const update = UpdateSessionRequest.fromPartial({ sessionId: id, title: "meanwhile" });
        await client.session.updateSession(update);
        const { session } = await client.session.killSession({ sessionId: id });
        same([session?.title, session?.headPosition], ["meanwhile", 24n]);
      } finally {
        await letGo();
      }
    });

    it("a backend that is terminated under an append fails it, and the retry stores once [B052]", async () => {
      const { id } = await create();
      const letGo = await holdRow(id);
      const lost = emit(client, id, [userMessage("x", "sevt_x")]).catch((error) => error);
      await terminate(await blocked(1));
      unavailable(await lost);
      await letGo();
      const answer = await emit(client, id, [userMessage("x", "sevt_x")]);
      same([answer.headPosition, answer.stored[0]?.isDuplicate], [2n, false]);
      assert.equal(kit().service.process.exitCode, null);
    });

    it("a backend that is terminated inside a transaction undoes all of it [B053]", async () => {
      const { id } = await create();
      const harness = await kit().as("harness", "harness-cut");
      const bootId = "boot-for-failures-01";
      await harness.session.harnessHeartbeat({ bootId, activeSessions: 0, isDraining: false });
      await kit().sql("ganglion_owner", "SELECT proxy.raise_fence($1, 0, false)", [id]);
      // Epoch and event are written by then; the fence is what it waits for.
      const letGo = await hold("SELECT 1 FROM proxy.fences WHERE session_id = $1 FOR UPDATE", [id]);
      const lost = harness.session.acquireLease({ sessionId: id, bootId }).catch((error) => error);
      await terminate(await blocked(1));
      unavailable(await lost);
      await letGo();
      assert.equal(await headOf(id), 1n);
      await harness.session.harnessHeartbeat({ bootId, activeSessions: 0, isDraining: false });
      const { lease } = await harness.session.acquireLease({ sessionId: id, bootId });
      same([lease?.epoch, lease?.headPosition], [1n, 2n]);
    });

    it("losing every connection at once, idle or not, costs a watcher nothing but time [B053, B050]", async () => {
      const { id } = await create();
      const stream = client.session.watchEvents(
        WatchEventsRequest.fromPartial({ sessionId: id, fromHead: true }),
      );
      await stream.next();
      // Whoever has been handed this reads no more by himself.
      await emit(client, id, [userMessage("x", "sevt_before")]);
      assert.equal((await nextEvent(stream))?.id, "sevt_before");
      const rows = await kit().sql(
        "ganglion_owner",
        "SELECT pid FROM pg_stat_activity WHERE usename = 'ganglion_session'",
      );
      assert.ok(rows.length > 1);
      await terminate(rows.map(({ pid }) => pid));
      const stored = await emitUntilStored(client, id, "sevt_after");
      const next = await nextEvent(stream);
      same([next?.id, next?.position], ["sevt_after", stored]);
      await stream.return();
      assert.equal(kit().service.process.exitCode, null);
    });

    it("a call waits for a connection no longer than its deadline, then the others go on [B054]", async () => {
      const replica = await kit().startReplica({ GANGLION_DB_POOL_SIZE: "2" });
      try {
        const small = await kit().asClient("wrkspc_default", replica.listening.addr);
        const sessions = await Promise.all(Array.from({ length: 4 }, () => create()));
        const holders = await Promise.all(sessions.map(({ id }) => holdRow(id)));
        // One at a time, so that each has a statement of its own.
        const [first, second, ...rest] = sessions;
        const stuck = [first, second].map((session, n) =>
          small.session.archiveSession({ sessionId: session?.id ?? "" }).then(
            () => n,
            (error) => error,
          ),
        );
        await blocked(2);
        const began = performance.now();
        await assert.rejects(
          small.session.getSession({ sessionId: rest[0]?.id ?? "" }, { timeoutMs: 700 }),
          (error: GanglionError) => ["DEADLINE_EXCEEDED", "UNAVAILABLE"].includes(error.code),
        );
        assert.ok(performance.now() - began < 3_000);
        for (const letGo of holders) await letGo();
        same(await Promise.all(stuck), [0, 1]);
        await small.session.getSession({ sessionId: rest[0]?.id ?? "" });
      } finally {
        await replica.stop();
      }
    });

    it("a database that is killed and comes back has each append once [A136]", async () => {
      const { id } = await create();
      const acknowledged = new Set<string>();
      const stream = client.session.watchEvents(
        WatchEventsRequest.fromPartial({ sessionId: id, fromHead: true }),
      );
      await stream.next();
      const writers = Array.from({ length: 8 }, async (_, writer) => {
        for (let n = 0; n < 5; n++) {
          await emitUntilStored(client, id, `sevt_${writer}_${n}`);
          acknowledged.add(`sevt_${writer}_${n}`);
        }
      });
      await nextEvent(stream);
      process.kill(kit().postgres.server.pid, "SIGKILL");
      await kit().postgres.server.exited;
      await kit().postgres.restart();
      await Promise.all(writers);
      const { events } = await client.session.getEvents(
        GetEventsRequest.fromPartial({ sessionId: id, afterPosition: 1n }),
      );
      same(events.map((event) => event.id).sort(), [...acknowledged].sort());
      same(
        events.map(({ position }) => Number(position)),
        Array.from({ length: 40 }, (_, n) => n + 2),
      );
      // The stream went on through all of it.
      const seen = [];
      while (seen.length < 39) seen.push((await nextEvent(stream))?.position);
      same(
        seen.map(Number),
        Array.from({ length: 39 }, (_, n) => n + 3),
      );
      await stream.return();
    }).timeout(60_000);

    it("a connection for hints that drops everything silently is found, and the watcher catches up [B050]", async () => {
      const proxy = await startCutProxy({ host: "127.0.0.1", port: kit().postgres.server.port });
      const replica = await kit().startReplica({ PGPORT: String(proxy.port) });
      try {
        const far = await kit().asClient("wrkspc_default", replica.listening.addr);
        const { id } = await create();
        const stream = far.session.watchEvents(
          WatchEventsRequest.fromPartial({ sessionId: id, fromHead: true }),
        );
        await stream.next();
        await emit(client, id, [userMessage("before", "sevt_before")]);
        assert.equal((await nextEvent(stream))?.id, "sevt_before");
        proxy.blackHole();
        await emit(client, id, [userMessage("during", "sevt_during")]);
        while (!replica.output().includes("lost the connection for hints")) await delay(50);
        proxy.heal();
        assert.equal((await nextEvent(stream))?.id, "sevt_during");
        await stream.return();
      } finally {
        await replica.stop();
        await proxy.close();
      }
    }).timeout(60_000);
  });
}

// Appends with one id until the log has it, as a client does that hears UNAVAILABLE.
async function emitUntilStored(client: Caller, sessionId: string, id: string): Promise<bigint | undefined> {
  for (;;) {
    try {
      return (await emit(client, sessionId, [userMessage(id, id)])).stored[0]?.position;
    } catch (error) {
      unavailable(error);
      await delay(50);
    }
  }
}

async function nextEvent(stream: ReturnType<Caller["session"]["watchEvents"]>) {
  for (;;) {
    const { value, done } = await stream.next();
    if (done) return undefined;
    if (value.message?.$case === "event") return { id: value.message.value.id, position: value.position };
  }
}
