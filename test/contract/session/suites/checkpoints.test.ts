import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { PutCheckpointRequest } from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import { emit, refused, refusedField, type SessionKit, userMessage } from "../session-kit.ts";
import { Suite } from "../suite.ts";

/** Cached folds. */
export function checkpointsSuite(kit: () => SessionKit): void {
  describe("checkpoints", () => {
    const suite = new Suite(kit, "checkpoints");

    const leased = async () => {
      const { id } = await suite.create();
      await emit(suite.client, id, [userMessage("a"), userMessage("b")]);
      const lease = await suite.acquire(id);
      const put = (position: bigint, data: Buffer, more: Partial<PutCheckpointRequest> = {}) =>
        suite.harness.session.putCheckpoint({
          sessionId: id,
          epoch: lease.epoch,
          position,
          format: "fold/1",
          data,
          ...more,
        });
      const get = (format = "fold/1", caller = suite.harness) =>
        caller.session.getCheckpoint({ sessionId: id, format });
      return { id, lease, put, get };
    };

    it("is kept for each format, and a lower position changes nothing", async () => {
      const { put, get } = await leased();
      const none = await get();
      assert.deepEqual([none.position, none.data.length], [0n, 0]);
      await put(2n, Buffer.from("two"));
      await put(1n, Buffer.from("one"));
      await put(3n, Buffer.from("other"), { format: "fold/2" });
      const kept = await get();
      assert.deepEqual([kept.position, kept.data.toString()], [2n, "two"]);
      await put(4n, Buffer.from("four"));
      assert.equal((await get()).data.toString(), "four");
      assert.equal((await get("fold/2")).position, 3n);
    });

    it("holds 3 MiB and not a byte more", async () => {
      const { put, get } = await leased();
      const data = randomBytes(3 << 20);
      await put(1n, data);
      assert.ok(data.equals((await get()).data));
      await assert.rejects(put(2n, randomBytes((3 << 20) + 1)), refused("RESOURCE_EXHAUSTED", "TOO_LARGE"));
    });

    it("only the holder of the lease puts one, and not ahead of the log", async () => {
      const { id, lease, put, get } = await leased();
      const data = Buffer.from("x");
      await assert.rejects(
        put(1n, data, { epoch: lease.epoch + 1n }),
        refused("FAILED_PRECONDITION", "STALE_EPOCH"),
      );
      const other = await kit().as("harness", "harness-other");
      await assert.rejects(
        other.session.putCheckpoint({ sessionId: id, epoch: lease.epoch, position: 1n, format: "f", data }),
        refused("FAILED_PRECONDITION", "STALE_EPOCH"),
      );
      await assert.rejects(put(99n, data), refused("OUT_OF_RANGE", "POSITION_AHEAD_OF_LOG"));
      await assert.rejects(
        put(1n, data, { sessionId: "sesn_none" }),
        refused("NOT_FOUND", "SESSION_NOT_FOUND"),
      );
      await assert.rejects(
        suite.harness.session.getCheckpoint({ sessionId: "sesn_none", format: "f" }),
        refused("NOT_FOUND", "SESSION_NOT_FOUND"),
      );
      assert.equal((await get("fold/1", other)).position, 0n);
    });

    it("names every field that is wrong", async () => {
      const { put } = await leased();
      await assert.rejects(put(0n, Buffer.from("x")), refusedField("position"));
      await assert.rejects(put(1n, Buffer.alloc(0)), refusedField("data"));
      await assert.rejects(put(1n, Buffer.from("x"), { format: "" }), refusedField("format"));
      await assert.rejects(put(1n, Buffer.from("x"), { format: "f".repeat(65) }), refusedField("format"));
      await assert.rejects(put(1n, Buffer.from("x"), { epoch: 0n }), refusedField("epoch"));
    });

    it("goes with its session, and does not hold up an append", async () => {
      const { id, put } = await leased();
      await Promise.all(
        Array.from({ length: 8 }, (_, n) => [
          emit(suite.client, id, [userMessage(`m${n}`)]),
          put(BigInt(n % 3) + 1n, randomBytes(200_000)),
        ]).flat(),
      );
      await kit().sql("ganglion_owner", "DELETE FROM session.sessions WHERE session_id = $1", [id]);
      const rows = await kit().sql(
        "ganglion_owner",
        "SELECT 1 FROM session.checkpoints WHERE session_id = $1",
        [id],
      );
      assert.equal(rows.length, 0);
    });
  });
}
