import assert from "node:assert/strict";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { toRestError } from "../../../services/gateway/domain/error-envelope.ts";
import { readCursor, writeCursor } from "../../../services/gateway/domain/event-cursor.ts";
import { limitOf, readQuery } from "../../../services/gateway/domain/page-query.ts";
import { PreviewFrames } from "../../../services/gateway/domain/preview-frames.ts";
import { RawJson, writeJson } from "../../../services/gateway/domain/raw-json.ts";
import {
  createSessionRequest,
  listSessionsRequest,
  updateSessionRequest,
} from "../../../services/gateway/domain/session-request.ts";
import { fromRfc3339, justAfter, toRfc3339 } from "../../../services/gateway/domain/timestamps.ts";

const raw = (text: string) => new RawJson(Buffer.from(text));
const mint = () => "sevt_1";

describe("what the REST API says and reads", () => {
  it("writes a model's JSON as it is, whatever texts of others look like [M25]", () => {
    const input = '{"b":1e400,"a":"\\u00fc"}';
    const once = writeJson({ input: raw(input), text: "$& $1 @raw:0" });
    assert.equal(once, `{"input":${input},"text":"$& $1 @raw:0"}`);
    // A text that copies what a mark looks like is still a text.
    assert.equal(
      writeJson({ text: '"@raw:000000000000000000000000:0"', x: raw("1") }),
      '{"text":"\\"@raw:000000000000000000000000:0\\"","x":1}',
    );
    assert.equal(writeJson({ big: 9_007_199_254_740_991n }), '{"big":9007199254740991}');
  });

  it("keeps the microseconds of a time, and reads offsets", () => {
    const at = fromRfc3339("2026-11-30T02:01:21.586304Z", "t");
    assert.deepEqual(at, { seconds: 1_796_004_081n, nanos: 586_304_000 });
    assert.equal(toRfc3339(at), "2026-11-30T02:01:21.586304Z");
    assert.equal(toRfc3339(fromRfc3339("2026-11-30T04:01:21+02:00", "t")), "2026-11-30T02:01:21Z");
    assert.equal(
      toRfc3339(justAfter(fromRfc3339("2026-11-30T02:01:21.999999Z", "t"))),
      "2026-11-30T02:01:22Z",
    );
    assert.throws(() => fromRfc3339("yesterday", "created_at[gt]"), /created_at\[gt\]/);
  });

  it("maps every error to one status, and says that conflicts are for good [trap 5]", () => {
    const of = (code: GanglionError["code"], reason = "X") => {
      const { status, headers, body } = toRestError(
        new GanglionError({ code, reason, message: "no" }),
        "req_1",
      );
      assert.equal(body.request_id, "req_1");
      return [status, body.error.type, headers["x-should-retry"]];
    };
    assert.deepEqual(of("INVALID_ARGUMENT"), [400, "invalid_request_error", undefined]);
    assert.deepEqual(of("UNAUTHENTICATED"), [401, "authentication_error", undefined]);
    assert.deepEqual(of("PERMISSION_DENIED"), [403, "permission_error", undefined]);
    assert.deepEqual(of("NOT_FOUND"), [404, "not_found_error", undefined]);
    assert.deepEqual(of("ABORTED", "VERSION_CONFLICT"), [409, "conflict_error", "false"]);
    assert.deepEqual(of("FAILED_PRECONDITION", "SESSION_ENDED"), [409, "conflict_error", "false"]);
    assert.deepEqual(of("RESOURCE_EXHAUSTED", "TOO_LARGE"), [413, "request_too_large", undefined]);
    assert.deepEqual(of("UNAVAILABLE"), [503, "api_error", undefined]);
  });

  it("names the field that is wrong in the message people read", () => {
    const error = new GanglionError({
      code: "INVALID_ARGUMENT",
      reason: "INVALID_FIELD",
      message: "the request is wrong",
      violations: [{ field: "definition_json.name", description: "is required" }],
    });
    assert.match(toRestError(error, "req_1").body.error.message, /definition_json\.name: is required/);
  });

  it("binds a cursor to its order", () => {
    const page = writeCursor({ order: "asc", position: 12n });
    assert.deepEqual(readCursor(page, "asc"), { order: "asc", position: 12n });
    assert.throws(() => readCursor(page, "desc"), /another order/);
    for (const bad of ["", "x", writeCursor({ order: "asc", position: -1n })])
      assert.throws(() => readCursor(bad, "asc"));
  });

  it("reads arrays, and refuses what it does not know or cannot serve", () => {
    const query = readQuery("?types%5B%5D=a&types%5B%5D=b&limit=5&beta=true", ["types", "limit"]);
    assert.deepEqual([...(query.types ?? [])], ["a", "b"]);
    assert.equal(limitOf(query, 20, 100), 5);
    assert.throws(() => readQuery("?colour=red", ["types"]), /colour/);
    for (const limit of ["0", "101", "x", "1.5"]) {
      assert.throws(() => limitOf(readQuery(`?limit=${limit}`, ["limit"]), 20, 100), /limit/);
    }
  });

  it("shows a preview from its start on, once, and nothing of it after its event", () => {
    const frames = new PreviewFrames(new Set(["agent.message"]));
    const start = (eventId: string, eventType: string) =>
      frames.next({ eventId, message: { $case: "start", value: { eventType } } });
    const text = (eventId: string) =>
      frames.next({ eventId, message: { $case: "text", value: { text: "x" } } });
    assert.equal(text("sevt_0"), undefined, "joined in the middle");
    assert.equal(start("sevt_1", "agent.thinking"), undefined, "not asked for");
    assert.equal(start("sevt_2", "agent.message")?.type, "event_start");
    assert.equal(start("sevt_2", "agent.message"), undefined, "a second start");
    assert.equal(text("sevt_2")?.type, "event_delta");
    frames.stored("sevt_2");
    assert.equal(text("sevt_2"), undefined, "a late delta");
  });

  it("has no frame for a tool's progress, whatever a connection asked for [B092]", () => {
    const frames = new PreviewFrames(new Set(["agent.message", "agent.thinking"]));
    const value = { progress: 1, total: 2, message: "half" };
    assert.equal(frames.next({ eventId: "sevt_1", message: { $case: "toolProgress", value } }), undefined);
    const start = { $case: "start" as const, value: { eventType: "agent.message" } };
    assert.equal(frames.next({ eventId: "sevt_1", message: start })?.type, "event_start");
  });

  it("takes a session's request apart and refuses by name what is not there yet", () => {
    const { request: wanted } = createSessionRequest(
      {
        agent: { type: "agent", id: "agent_1", version: 3 },
        environment_id: "env_1",
        title: null,
        vault_ids: ["vlt_1"],
      },
      "req_1",
      mint,
    );
    assert.deepEqual(
      [wanted.agentId, wanted.agentVersion, wanted.vaultIds, wanted.title],
      ["agent_1", 3, ["vlt_1"], ""],
    );
    const base = { agent: "agent_1", environment_id: "env_1" };
    const repository = { type: "github_repository", url: "https://git.example/a/b" };
    for (const [more, message] of [
      [{ resources: [{ type: "file" }] }, /resources\[0\].type file: not supported/],
      [{ resources: [{ type: "folder" }] }, /resources\[0\].type: must be github_repository/],
      [{ resources: [{ type: "github_repository" }] }, /resources\[0\].url: is required/],
      [{ resources: [{ ...repository, token: "x" }] }, /resources\[0\].token: is not known/],
      [{ resources: [{ ...repository, checkout: { type: "tag", name: "v1" } }] }, /checkout.type: must be/],
      [
        { resources: [{ ...repository, authorization_token: "s h o r t\n" }] },
        /authorization_token: must be/,
      ],
      [{ budget: { type: "limit" } }, /budget.max_list_cost: must be an object/],
      [{ budget: { type: "limit", max_list_cost: { amount: 25, currency: "USD" } } }, /max_list_cost.amount/],
      [
        { budget: { type: "limit", max_list_cost: { amount: "0", currency: "USD" } } },
        /max_list_cost.amount/,
      ],
      [
        { budget: { type: "limit", max_list_cost: { amount: "1.5", currency: "USD" } } },
        /max_list_cost.amount/,
      ],
      [
        { budget: { type: "limit", max_list_cost: { amount: "1", currency: "EUR" } } },
        /max_list_cost.currency/,
      ],
      [{ agent: { type: "agent_with_overrides", id: "agent_1" } }, /agent_with_overrides: not supported/],
      [{ colour: "red" }, /colour/],
      [{ environment_id: "" }, /environment_id/],
      [{ metadata: { a: 1 } }, /metadata\.a/],
    ] as const) {
      assert.throws(() => createSessionRequest({ ...base, ...more }, "req_1", mint), message);
    }
  });

  it("tells an absent title from one that is cleared, and null from a value in metadata", () => {
    assert.equal(updateSessionRequest("sesn_1", {}).title, undefined);
    assert.equal(updateSessionRequest("sesn_1", { title: null }).title, "");
    const { metadataSet, metadataRemove } = updateSessionRequest("sesn_1", {
      metadata: { a: null, b: "", c: "x" },
    });
    assert.deepEqual([metadataSet, metadataRemove], [{ b: "", c: "x" }, ["a"]]);
    assert.throws(() => updateSessionRequest("sesn_1", { vault_ids: [] }), /vault_ids: cannot be changed/);
  });

  it("turns open ends of a time range into the closed ones the log has", () => {
    const keys = ["created_at[gt]", "created_at[lte]", "statuses"];
    const search =
      "?created_at%5Bgt%5D=2026-01-01T00:00:00Z&created_at%5Blte%5D=2026-01-02T00:00:00Z&statuses[]=running";
    const { createdAtOrAfter, createdBefore, statuses } = listSessionsRequest(readQuery(search, keys));
    assert.equal(createdAtOrAfter?.nanos, 1000);
    assert.equal(createdBefore?.nanos, 1000);
    assert.deepEqual(statuses, [2]);
  });
});
