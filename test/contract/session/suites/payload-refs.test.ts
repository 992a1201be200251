import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { ContentBlock, PayloadRef } from "../../../../services/gen/ganglion/types/v1/content.ts";
import { countPieces, MAX, MIB, put, read, refTo, sha256 } from "../payload-calls.ts";
import { emit, event, json, refused, refusedField, type SessionKit, same } from "../session-kit.ts";
import { Suite } from "../suite.ts";

/** Events that name content beside the log, and how long that is kept. */
export function payloadRefsSuite(kit: () => SessionKit): void {
  describe("payloads that events name", () => {
    const suite = new Suite(kit, "payload-refs");
    const pieces = () => countPieces(kit());
    const message = (ref: PayloadRef, type = "image", id = "") => {
      const block: ContentBlock = { type, data: { $case: "payload", value: ref } };
      return event({ $case: "userMessage", value: { content: [block] } }, id);
    };
    const image = (bytes: number) =>
      json({
        type: "image",
        source: { type: "base64", media_type: "image/png", data: "A".repeat(bytes) },
      });

    it("an event may name content that is there and is what it says, and nothing else", async () => {
      const { id } = await suite.create();
      const document = image(2 * MIB);
      const ref = refTo("img", document);
      await assert.rejects(emit(suite.client, id, [message(ref)]), refused("NOT_FOUND", "PAYLOAD_NOT_FOUND"));
      await put(suite.client, id, "img", document, { header: { contentType: "application/json" } });
      for (const wrong of [
        { sizeBytes: ref.sizeBytes + 1n },
        { sha256: sha256(Buffer.from("x")) },
        { contentType: "image/png" },
      ]) {
        await assert.rejects(
          emit(suite.client, id, [message({ ...ref, ...wrong })]),
          refused("INVALID_ARGUMENT", "PAYLOAD_MISMATCH"),
        );
      }
      await assert.rejects(
        emit(suite.client, id, [message({ ...ref, excerpt: "é".repeat(2049) })]),
        refusedField("events[0].user_message.content[0].payload.excerpt"),
      );
      await assert.rejects(
        emit(suite.client, id, [message({ ...ref, sizeBytes: BigInt(MAX + 1) })]),
        refusedField("events[0].user_message.content[0].payload.size_bytes"),
      );
      await assert.rejects(
        emit(suite.client, "sesn_none", [message(ref)]),
        refused("NOT_FOUND", "SESSION_NOT_FOUND"),
      );
      const stored = await emit(suite.client, id, [
        message({ ...ref, excerpt: "é".repeat(2048) }, "image", "sevt_ref"),
      ]);
      assert.equal(stored.headPosition, 2n);
      const again = await emit(suite.client, id, [
        message({ ...ref, excerpt: "é".repeat(2048) }, "image", "sevt_ref"),
      ]);
      assert.equal(again.stored[0]?.isDuplicate, true);
    });

    it("a block's stored document is held against the rules of one inside the event [A057]", async () => {
      const { id } = await suite.create();
      const refuse = async (name: string, document: Buffer, type: string, field: string) => {
        await put(suite.client, id, name, document, { header: { contentType: "application/json" } });
        await assert.rejects(
          emit(suite.client, id, [message(refTo(name, document), type)]),
          refusedField(`events[0].content[0].${field}`),
        );
      };
      await refuse("no-json", Buffer.from("not json"), "image", "json");
      await refuse("other-type", json({ type: "text", text: "x" }), "image", "json");
      const fetched = json({ type: "image", source: { type: "url", url: "http://169.254.169.254/" } });
      await refuse("fetched", fetched, "image", "json.source.type");
      await refuse("tool", json({ type: "tool_result" }), "tool_result", "type");
    });

    it("a result's full output may be content of any kind", async () => {
      const { id } = await suite.create();
      const { epoch } = await suite.acquire(id);
      const output = randomBytes(1000);
      const facts = { contentType: "application/octet-stream" };
      await put(suite.harness, id, "out", output, { header: { ...facts, epoch } });
      const result = (ref: PayloadRef) =>
        event({
          $case: "agentToolResult",
          value: {
            toolUseId: "sevt_call",
            content: [],
            isError: false,
            outcome: 1,
            durationMs: undefined,
            fullOutput: ref,
          } as never,
        });
      const ref = { ...refTo("out", output), ...facts };
      await emit(suite.harness, id, [result(ref)], { epoch });
      await assert.rejects(
        emit(suite.harness, id, [result({ ...ref, sizeBytes: 1n })], { epoch }),
        refused("INVALID_ARGUMENT", "PAYLOAD_MISMATCH"),
      );
    });

    it("a session that is to be made has no content to name", async () => {
      await assert.rejects(
        suite.create({ initialEvents: [message(refTo("x", image(1)))] }),
        refusedField("initial_events[0].content[0]"),
      );
    });

    it("content goes with its session", async () => {
      const { id } = await suite.create();
      const document = image(MIB);
      await put(suite.client, id, "gone", document, { header: { contentType: "application/json" } });
      await emit(suite.client, id, [message(refTo("gone", document))]);
      await put(suite.client, id, "unnamed", document);
      await kit().sql(
        "ganglion_owner",
        "UPDATE session.sessions SET status = 'idle', runnable = false WHERE session_id = $1",
        [id],
      );
      const before = await pieces();
      await suite.client.session.deleteSession({ sessionId: id });
      assert.equal(await pieces(), before - 4);
      for (const table of ["payloads", "payload_names", "checkpoints"]) {
        const rows = await kit().sql(
          "ganglion_owner",
          `SELECT 1 FROM session.${table} WHERE session_id = $1`,
          [id],
        );
        assert.equal(rows.length, 0, table);
      }
    });

    it("content that two sessions share goes with the second", async () => {
      const source = await suite.create();
      const document = image(10);
      await put(suite.client, source.id, "shared", document, { header: { contentType: "application/json" } });
      await put(suite.client, source.id, "not-named", Buffer.from("x"));
      await emit(suite.client, source.id, [message(refTo("shared", document))]);
      const { session: fork } = await suite.client.session.forkSession({
        ...{ requestId: "", sessionId: source.id, position: 0n, title: undefined },
      });
      assert.ok(fork);
      await assert.rejects(
        read(suite.client, fork.id, "not-named"),
        refused("NOT_FOUND", "PAYLOAD_NOT_FOUND"),
      );
      const before = await pieces();
      await kit().sql("ganglion_owner", "DELETE FROM session.sessions WHERE session_id = $1", [source.id]);
      assert.equal(await pieces(), before - 1);
      assert.ok((await read(suite.client, fork.id, "shared")).equals(document));
      await kit().sql("ganglion_owner", "DELETE FROM session.sessions WHERE session_id = $1", [fork.id]);
      assert.equal(await pieces(), before - 2);
    });

    it("old content that no event names is removed, and no other", async () => {
      const { id } = await suite.create();
      const document = image(10);
      for (const name of ["old-named", "old", "young"])
        await put(suite.client, id, name, document, { header: { contentType: "application/json" } });
      await emit(suite.client, id, [message(refTo("old-named", document))]);
      await kit().sql(
        "ganglion_owner",
        "UPDATE session.payloads SET created_at = created_at - interval '25 hours' WHERE payload_id LIKE 'old%'",
      );
      const orphan =
        "INSERT INTO session.payload_chunks (workspace_id, upload_id, nth, data, created_at) VALUES";
      await kit().sql(
        "ganglion_owner",
        `${orphan} ('wrkspc_default', 'payl_orphan', 0, 'x', now() - interval '25 hours'),
          ('wrkspc_default', 'payl_orphan', 1, 'x', now()), ('wrkspc_default', 'payl_fresh', 0, 'x', now())`,
      );
      await kit().sql(
        "ganglion_owner",
        "UPDATE session.payload_chunks SET created_at = created_at - interval '25 hours' WHERE upload_id IN (SELECT upload_id FROM session.payloads WHERE payload_id LIKE 'old%')",
      );
      const [{ removed }] = await kit().sql(
        "ganglion_session",
        "SELECT session.remove_old_payloads() AS removed",
      );
      assert.ok(removed >= 2);
      await assert.rejects(read(suite.client, id, "old"), refused("NOT_FOUND", "PAYLOAD_NOT_FOUND"));
      assert.ok((await read(suite.client, id, "old-named")).equals(document));
      assert.ok((await read(suite.client, id, "young")).equals(document));
      const left = await kit().sql(
        "ganglion_owner",
        "SELECT DISTINCT upload_id FROM session.payload_chunks WHERE upload_id IN ('payl_orphan', 'payl_fresh')",
      );
      same(left, [{ upload_id: "payl_fresh" }]);
      await kit().sql("ganglion_owner", "DELETE FROM session.payload_chunks WHERE upload_id = 'payl_fresh'");
    });

    it("the service's role can neither change nor remove content by itself [A137]", async () => {
      for (const text of [
        "UPDATE session.payload_chunks SET data = data",
        "DELETE FROM session.payload_chunks",
        "UPDATE session.payloads SET sha256 = sha256",
        "DELETE FROM session.payloads",
        "DELETE FROM session.payload_names",
        "DELETE FROM session.checkpoints",
      ]) {
        await assert.rejects(kit().sql("ganglion_session", text), (error: Error & { code?: string }) => {
          assert.equal(error.code, "42501", text);
          return true;
        });
      }
    });
  });
}
