import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { PutPayloadRequest } from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import { countPieces, data, head, MAX, MIB, put, read, sha256 } from "../payload-calls.ts";
import { refused, refusedField, type SessionKit, same } from "../session-kit.ts";
import { Suite } from "../suite.ts";

/** Content beside the log. */
export function payloadsSuite(kit: () => SessionKit): void {
  describe("payloads", () => {
    const suite = new Suite(kit, "payloads");

    const chunksOf = async (uploadOf: string) =>
      kit().sql(
        "ganglion_owner",
        `SELECT c.nth FROM session.payloads p JOIN session.payload_chunks c USING (workspace_id, upload_id)
         WHERE p.payload_id = $1 ORDER BY 1`,
        [uploadOf],
      );
    const pieces = () => countPieces(kit());

    it("what is put is read back byte by byte, from any offset, whatever the size of the messages", async () => {
      const { id } = await suite.create();
      for (const [size, step] of [
        [1, 1],
        [MIB, MIB],
        [3 * MIB + 17, 100_003],
      ] as const) {
        const content = randomBytes(size);
        const { isDuplicate } = await put(suite.client, id, `p${size}`, content, { step });
        assert.equal(isDuplicate, false);
        assert.ok((await read(suite.client, id, `p${size}`)).equals(content));
        const offset = Math.floor(size * 0.7);
        assert.ok((await read(suite.client, id, `p${size}`, offset)).equals(content.subarray(offset)));
        assert.equal((await read(suite.client, id, `p${size}`, size)).length, 0);
        assert.equal((await chunksOf(`p${size}`)).length, Math.ceil(size / MIB));
      }
    });

    it("32 MiB go in and come out, and one byte more is refused", async function () {
      this.timeout(60_000);
      const { id } = await suite.create();
      const content = Buffer.alloc(MAX, "ganglion ");
      await put(suite.operator, id, "large", content, { step: MIB });
      assert.equal(
        sha256(await read(suite.operator, id, "large")).toString("hex"),
        sha256(content).toString("hex"),
      );
      await assert.rejects(
        put(suite.client, id, "larger", Buffer.alloc(1), { header: { sizeBytes: BigInt(MAX + 1) } }),
        refused("RESOURCE_EXHAUSTED", "TOO_LARGE"),
      );
    });

    it("the same again changes nothing; other content under the id is refused; two at once are one", async () => {
      const { id } = await suite.create();
      const content = randomBytes(MIB + 5);
      const both = await Promise.all([
        put(suite.client, id, "same", content),
        put(suite.client, id, "same", content),
      ]);
      same(both.map(({ isDuplicate }) => isDuplicate).sort(), [false, true]);
      same(await put(suite.client, id, "same", content), { isDuplicate: true });
      assert.equal((await chunksOf("same")).length, 2);
      await assert.rejects(
        put(suite.client, id, "same", randomBytes(9)),
        refused("ALREADY_EXISTS", "ID_REUSED"),
      );
      const lie = randomBytes(MIB + 5);
      const header = { sha256: sha256(content) };
      await assert.rejects(
        put(suite.client, id, "same", lie, { header }),
        refused("INVALID_ARGUMENT", "PAYLOAD_MISMATCH"),
      );
      assert.ok((await read(suite.client, id, "same")).equals(content));
    });

    it("content that is not what its header says is refused and leaves nothing behind", async () => {
      const { id } = await suite.create();
      const before = await pieces();
      const content = randomBytes(2 * MIB);
      for (const header of [
        { sizeBytes: BigInt(content.length - 1) },
        { sizeBytes: BigInt(content.length + 1) },
        { sha256: sha256(Buffer.from("x")) },
      ]) {
        await assert.rejects(
          put(suite.client, id, "bad", content, { header }),
          refused("INVALID_ARGUMENT", "PAYLOAD_MISMATCH"),
        );
      }
      await assert.rejects(read(suite.client, id, "bad"), refused("NOT_FOUND", "PAYLOAD_NOT_FOUND"));
      await until(async () => (await pieces()) === before);
    });

    it("a broken upload leaves nothing visible", async () => {
      const { id } = await suite.create();
      const before = await pieces();
      const content = randomBytes(3 * MIB);
      const abort = new AbortController();
      const messages = async function* () {
        yield head(id, "broken", content);
        yield data(content.subarray(0, MIB));
        yield data(content.subarray(MIB, 2 * MIB));
        await until(async () => (await pieces()) > before);
        abort.abort();
        await new Promise(() => {});
      };
      await assert.rejects(suite.client.session.putPayload(messages(), { signal: abort.signal }));
      await assert.rejects(read(suite.client, id, "broken"), refused("NOT_FOUND", "PAYLOAD_NOT_FOUND"));
      await until(async () => (await pieces()) === before);
      await put(suite.client, id, "broken", content);
    });

    it("the messages must come in order and within bounds", async () => {
      const { id } = await suite.create();
      const content = Buffer.from("abc");
      const send = (messages: PutPayloadRequest[]) => suite.client.session.putPayload(messages);
      await assert.rejects(send([]), refusedField("header"));
      await assert.rejects(send([data(content)]), refusedField("header"));
      await assert.rejects(send([head(id, "a", content), head(id, "a", content)]), refusedField("data"));
      await assert.rejects(send([head(id, "a", content), data(Buffer.alloc(0))]), refusedField("data"));
      await assert.rejects(
        send([head(id, "a", Buffer.alloc(2 * MIB)), data(Buffer.alloc(MIB + 1))]),
        refusedField("data"),
      );
      for (const [field, header] of [
        ["header.session_id", { sessionId: "" }],
        ["header.payload_id", { payloadId: "a b" }],
        ["header.size_bytes", { sizeBytes: 0n }],
        ["header.sha256", { sha256: Buffer.alloc(31) }],
        ["header.content_type", { contentType: "x".repeat(128) }],
        ["header.content_type", { contentType: "" }],
        ["header.epoch", { epoch: 1n }],
      ] as const) {
        await assert.rejects(send([head(id, "a", content, header), data(content)]), refusedField(field));
      }
    });

    it("a harness puts under its lease only; an ended session takes nothing", async () => {
      const { id } = await suite.create();
      const content = Buffer.from("result");
      const { epoch } = await suite.acquire(id);
      await put(suite.harness, id, "r1", content, { header: { epoch } });
      for (const wrong of [{ epoch: epoch + 1n }, {}]) {
        await assert.rejects(
          put(suite.harness, id, "r2", content, { header: wrong }),
          refused("FAILED_PRECONDITION", "STALE_EPOCH"),
        );
      }
      await suite.client.session.archiveSession({ sessionId: id });
      await assert.rejects(
        put(suite.client, id, "r3", content),
        refused("FAILED_PRECONDITION", "SESSION_ENDED"),
      );
      assert.ok((await read(suite.harness, id, "r1")).equals(content));
    });

    it("a takeover while the content comes makes the old brain's upload nothing", async () => {
      const { id } = await suite.create();
      const { epoch } = await suite.acquire(id);
      const content = Buffer.from("late");
      const messages = async function* () {
        yield head(id, "late", content, { epoch });
        await kit().sql(
          "ganglion_owner",
          "UPDATE session.sessions SET epoch = epoch + 1 WHERE session_id = $1",
          [id],
        );
        yield data(content);
      };
      await assert.rejects(
        suite.harness.session.putPayload(messages()),
        refused("FAILED_PRECONDITION", "STALE_EPOCH"),
      );
      await assert.rejects(read(suite.harness, id, "late"), refused("NOT_FOUND", "PAYLOAD_NOT_FOUND"));
    });

    it("a workspace's payloads are nobody else's [A140]", async () => {
      const { id } = await suite.create();
      const content = Buffer.from("mine");
      await put(suite.client, id, "mine", content);
      await assert.rejects(read(suite.stranger, id, "mine"), refused("NOT_FOUND", "SESSION_NOT_FOUND"));
      await assert.rejects(
        put(suite.stranger, id, "theirs", content),
        refused("NOT_FOUND", "SESSION_NOT_FOUND"),
      );
      await assert.rejects(read(suite.client, id, "none"), refused("NOT_FOUND", "PAYLOAD_NOT_FOUND"));
      await assert.rejects(read(suite.client, id, "mine", 5), refused("OUT_OF_RANGE", "INVALID_FIELD"));
    });
  });
}

// Asks again and again: what cleans up tells nobody.
async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setImmediate(resolve));
}
