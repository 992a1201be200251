import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import type {
  PutPayloadRequest,
  PutPayloadRequest_Header,
} from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import type { ContentBlock, PayloadRef } from "../../../../services/gen/ganglion/types/v1/content.ts";
import {
  type Caller,
  emit,
  event,
  json,
  makeFixture,
  refused,
  refusedField,
  type SessionKit,
  same,
} from "../session-kit.ts";

const MIB = 1 << 20;
const MAX = 33_554_432;

/** Content beside the log. */
export function payloadsSuite(kit: () => SessionKit): void {
  describe("payloads", () => {
    let client: Caller;
    let operator: Caller;
    let harness: Caller;
    let create: Awaited<ReturnType<typeof makeFixture>>["create"];
    const bootId = "boot-for-payloads-01";
    before(async () => {
      client = await kit().asClient();
      operator = await kit().as("operator");
      harness = await kit().as("harness", "harness-payloads");
      ({ create } = await makeFixture(client));
    });

    const acquire = async (sessionId: string) => {
      await harness.session.harnessHeartbeat({ bootId, activeSessions: 0, isDraining: false });
      const { lease } = await harness.session.acquireLease({ sessionId, bootId });
      assert.ok(lease);
      return lease;
    };
    const chunksOf = async (uploadOf: string) =>
      kit().sql(
        "ganglion_owner",
        `SELECT c.nth FROM session.payloads p JOIN session.payload_chunks c USING (workspace_id, upload_id)
         WHERE p.payload_id = $1 ORDER BY 1`,
        [uploadOf],
      );
    const pieces = async () => {
      const [row] = await kit().sql(
        "ganglion_owner",
        "SELECT count(*)::int AS n FROM session.payload_chunks",
      );
      return row.n as number;
    };

    it("what is put is read back byte by byte, from any offset, whatever the size of the messages", async () => {
      const { id } = await create();
      for (const [size, step] of [
        [1, 1],
        [MIB, MIB],
        [3 * MIB + 17, 100_003],
      ] as const) {
        const content = randomBytes(size);
        const { isDuplicate } = await put(client, id, `p${size}`, content, { step });
        assert.equal(isDuplicate, false);
        assert.ok((await read(client, id, `p${size}`)).equals(content));
        const offset = Math.floor(size * 0.7);
        assert.ok((await read(client, id, `p${size}`, offset)).equals(content.subarray(offset)));
        assert.equal((await read(client, id, `p${size}`, size)).length, 0);
        assert.equal((await chunksOf(`p${size}`)).length, Math.ceil(size / MIB));
      }
    });

    it("32 MiB go in and come out, and one byte more is refused", async function () {
      this.timeout(60_000);
      const { id } = await create();
      const content = Buffer.alloc(MAX, "ganglion ");
      await put(operator, id, "large", content, { step: MIB });
      assert.equal(
        sha256(await read(operator, id, "large")).toString("hex"),
        sha256(content).toString("hex"),
      );
      await assert.rejects(
        put(client, id, "larger", Buffer.alloc(1), { header: { sizeBytes: BigInt(MAX + 1) } }),
        refused("RESOURCE_EXHAUSTED", "TOO_LARGE"),
      );
    });

    it("the same again changes nothing; other content under the id is refused; two at once are one", async () => {
      const { id } = await create();
      const content = randomBytes(MIB + 5);
      const both = await Promise.all([put(client, id, "same", content), put(client, id, "same", content)]);
      same(both.map(({ isDuplicate }) => isDuplicate).sort(), [false, true]);
      same(await put(client, id, "same", content), { isDuplicate: true });
      assert.equal((await chunksOf("same")).length, 2);
      await assert.rejects(put(client, id, "same", randomBytes(9)), refused("ALREADY_EXISTS", "ID_REUSED"));
      const lie = randomBytes(MIB + 5);
      const header = { sha256: sha256(content) };
      await assert.rejects(
        put(client, id, "same", lie, { header }),
        refused("INVALID_ARGUMENT", "PAYLOAD_MISMATCH"),
      );
      assert.ok((await read(client, id, "same")).equals(content));
    });

    it("content that is not what its header says is refused and leaves nothing behind", async () => {
      const { id } = await create();
      const before = await pieces();
      const content = randomBytes(2 * MIB);
      for (const header of [
        { sizeBytes: BigInt(content.length - 1) },
        { sizeBytes: BigInt(content.length + 1) },
        { sha256: sha256(Buffer.from("x")) },
      ]) {
        await assert.rejects(
          put(client, id, "bad", content, { header }),
          refused("INVALID_ARGUMENT", "PAYLOAD_MISMATCH"),
        );
      }
      await assert.rejects(read(client, id, "bad"), refused("NOT_FOUND", "PAYLOAD_NOT_FOUND"));
      await until(async () => (await pieces()) === before);
    });

    it("a broken upload leaves nothing visible", async () => {
      const { id } = await create();
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
      await assert.rejects(client.session.putPayload(messages(), { signal: abort.signal }));
      await assert.rejects(read(client, id, "broken"), refused("NOT_FOUND", "PAYLOAD_NOT_FOUND"));
      await until(async () => (await pieces()) === before);
      await put(client, id, "broken", content);
    });

    it("the messages must come in order and within bounds", async () => {
      const { id } = await create();
      const content = Buffer.from("abc");
      const send = (messages: PutPayloadRequest[]) => client.session.putPayload(messages);
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
      const { id } = await create();
      const content = Buffer.from("result");
      const { epoch } = await acquire(id);
      await put(harness, id, "r1", content, { header: { epoch } });
      for (const wrong of [{ epoch: epoch + 1n }, {}]) {
        await assert.rejects(
          put(harness, id, "r2", content, { header: wrong }),
          refused("FAILED_PRECONDITION", "STALE_EPOCH"),
        );
      }
      await client.session.archiveSession({ sessionId: id });
      await assert.rejects(put(client, id, "r3", content), refused("FAILED_PRECONDITION", "SESSION_ENDED"));
      assert.ok((await read(harness, id, "r1")).equals(content));
    });

    it("a takeover while the content comes makes the old brain's upload nothing", async () => {
      const { id } = await create();
      const { epoch } = await acquire(id);
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
        harness.session.putPayload(messages()),
        refused("FAILED_PRECONDITION", "STALE_EPOCH"),
      );
      await assert.rejects(read(harness, id, "late"), refused("NOT_FOUND", "PAYLOAD_NOT_FOUND"));
    });

    it("a workspace's payloads are nobody else's [A140]", async () => {
      await kit().sql(
        "ganglion_owner",
        "INSERT INTO session.workspaces (workspace_id) VALUES ('wrkspc_payloads') ON CONFLICT DO NOTHING",
      );
      const stranger = await kit().asClient("wrkspc_payloads");
      const { id } = await create();
      const content = Buffer.from("mine");
      await put(client, id, "mine", content);
      await assert.rejects(read(stranger, id, "mine"), refused("NOT_FOUND", "SESSION_NOT_FOUND"));
      await assert.rejects(put(stranger, id, "theirs", content), refused("NOT_FOUND", "SESSION_NOT_FOUND"));
      await assert.rejects(read(client, id, "none"), refused("NOT_FOUND", "PAYLOAD_NOT_FOUND"));
      await assert.rejects(read(client, id, "mine", 5), refused("OUT_OF_RANGE", "INVALID_FIELD"));
    });

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
      const { id } = await create();
      const document = image(2 * MIB);
      const ref = refTo("img", document);
      await assert.rejects(emit(client, id, [message(ref)]), refused("NOT_FOUND", "PAYLOAD_NOT_FOUND"));
      await put(client, id, "img", document, { header: { contentType: "application/json" } });
      for (const wrong of [
        { sizeBytes: ref.sizeBytes + 1n },
        { sha256: sha256(Buffer.from("x")) },
        { contentType: "image/png" },
      ]) {
        await assert.rejects(
          emit(client, id, [message({ ...ref, ...wrong })]),
          refused("INVALID_ARGUMENT", "PAYLOAD_MISMATCH"),
        );
      }
      await assert.rejects(
        emit(client, id, [message({ ...ref, excerpt: "é".repeat(2049) })]),
        refusedField("events[0].user_message.content[0].payload.excerpt"),
      );
      await assert.rejects(
        emit(client, id, [message({ ...ref, sizeBytes: BigInt(MAX + 1) })]),
        refusedField("events[0].user_message.content[0].payload.size_bytes"),
      );
      await assert.rejects(
        emit(client, "sesn_none", [message(ref)]),
        refused("NOT_FOUND", "SESSION_NOT_FOUND"),
      );
      const stored = await emit(client, id, [
        message({ ...ref, excerpt: "é".repeat(2048) }, "image", "sevt_ref"),
      ]);
      assert.equal(stored.headPosition, 2n);
      const again = await emit(client, id, [
        message({ ...ref, excerpt: "é".repeat(2048) }, "image", "sevt_ref"),
      ]);
      assert.equal(again.stored[0]?.isDuplicate, true);
    });

    it("a block's stored document is held against the rules of one inside the event [A057]", async () => {
      const { id } = await create();
      const refuse = async (name: string, document: Buffer, type: string, field: string) => {
        await put(client, id, name, document, { header: { contentType: "application/json" } });
        await assert.rejects(
          emit(client, id, [message(refTo(name, document), type)]),
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
      const { id } = await create();
      const { epoch } = await acquire(id);
      const output = randomBytes(1000);
      const facts = { contentType: "application/octet-stream" };
      await put(harness, id, "out", output, { header: { ...facts, epoch } });
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
      await emit(harness, id, [result(ref)], { epoch });
      await assert.rejects(
        emit(harness, id, [result({ ...ref, sizeBytes: 1n })], { epoch }),
        refused("INVALID_ARGUMENT", "PAYLOAD_MISMATCH"),
      );
    });

    it("a session that is to be made has no content to name", async () => {
      await assert.rejects(
        create({ initialEvents: [message(refTo("x", image(1)))] }),
        refusedField("initial_events[0].content[0]"),
      );
    });

    it("content goes with its session", async () => {
      const { id } = await create();
      const document = image(MIB);
      await put(client, id, "gone", document, { header: { contentType: "application/json" } });
      await emit(client, id, [message(refTo("gone", document))]);
      await put(client, id, "unnamed", document);
      await kit().sql(
        "ganglion_owner",
        "UPDATE session.sessions SET status = 'idle', runnable = false WHERE session_id = $1",
        [id],
      );
      const before = await pieces();
      await client.session.deleteSession({ sessionId: id });
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
      const source = await create();
      const document = image(10);
      await put(client, source.id, "shared", document, { header: { contentType: "application/json" } });
      await put(client, source.id, "not-named", Buffer.from("x"));
      await emit(client, source.id, [message(refTo("shared", document))]);
      const { session: fork } = await client.session.forkSession({
        ...{ requestId: "", sessionId: source.id, position: 0n, title: undefined },
      });
      assert.ok(fork);
      await assert.rejects(read(client, fork.id, "not-named"), refused("NOT_FOUND", "PAYLOAD_NOT_FOUND"));
      const before = await pieces();
      await kit().sql("ganglion_owner", "DELETE FROM session.sessions WHERE session_id = $1", [source.id]);
      assert.equal(await pieces(), before - 1);
      assert.ok((await read(client, fork.id, "shared")).equals(document));
      await kit().sql("ganglion_owner", "DELETE FROM session.sessions WHERE session_id = $1", [fork.id]);
      assert.equal(await pieces(), before - 2);
    });

    it("old content that no event names is removed, and no other", async () => {
      const { id } = await create();
      const document = image(10);
      for (const name of ["old-named", "old", "young"])
        await put(client, id, name, document, { header: { contentType: "application/json" } });
      await emit(client, id, [message(refTo("old-named", document))]);
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
      await assert.rejects(read(client, id, "old"), refused("NOT_FOUND", "PAYLOAD_NOT_FOUND"));
      assert.ok((await read(client, id, "old-named")).equals(document));
      assert.ok((await read(client, id, "young")).equals(document));
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

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest();

const data = (value: Buffer): PutPayloadRequest => ({ message: { $case: "data", value } });

function head(
  sessionId: string,
  payloadId: string,
  content: Buffer,
  header: Partial<PutPayloadRequest_Header> = {},
): PutPayloadRequest {
  const value: PutPayloadRequest_Header = {
    sessionId,
    payloadId,
    sizeBytes: BigInt(content.length),
    sha256: sha256(content),
    contentType: "application/octet-stream",
    epoch: undefined,
    ...header,
  };
  return { message: { $case: "header", value } };
}

function put(
  caller: Caller,
  sessionId: string,
  payloadId: string,
  content: Buffer,
  { step = 256 * 1024, header = {} }: { step?: number; header?: Partial<PutPayloadRequest_Header> } = {},
) {
  const messages = function* () {
    yield head(sessionId, payloadId, content, header);
    for (let at = 0; at < content.length; at += step) yield data(content.subarray(at, at + step));
  };
  return caller.session.putPayload(messages());
}

async function read(caller: Caller, sessionId: string, payloadId: string, offset = 0): Promise<Buffer> {
  const parts: Buffer[] = [];
  const request = { sessionId, payloadId, offsetBytes: BigInt(offset) };
  for await (const { data: part } of caller.session.getPayload(request)) {
    assert.ok(part.length > 0 && part.length <= MIB);
    parts.push(Buffer.from(part));
  }
  return Buffer.concat(parts);
}

function refTo(payloadId: string, content: Buffer): PayloadRef {
  return {
    payloadId,
    sizeBytes: BigInt(content.length),
    sha256: sha256(content),
    contentType: "application/json",
    excerpt: "",
  };
}

// Asks again and again: what cleans up tells nobody.
async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setImmediate(resolve));
}
