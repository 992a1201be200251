import assert from "node:assert/strict";
import { newSecret, newVaultId } from "./kit/logins.ts";
import { rawCall } from "./kit/raw-call.ts";
import { type SharedVault, SLOW_MS, sharedVault } from "./kit/test-vault.ts";

describe("KV version 2", () => {
  let vault: SharedVault;
  let path: string;

  before(async function () {
    this.timeout(SLOW_MS);
    vault = await sharedVault();
  });

  beforeEach(() => {
    path = `tests/${newVaultId()}/one`;
  });

  const call = (method: string, at: string, json?: unknown) =>
    rawCall(vault.address, method, `/v1/ganglion/${at}`, { token: vault.rootToken, json });
  const put = (json: unknown) => call("POST", `data/${path}`, json);

  it("writes and reads versions", async () => {
    const first = await put({ data: { secret: "one" } });
    assert.equal(first.status, 200);
    assert.equal(first.body.data.version, 1);
    assert.equal(first.body.data.deletion_time, "");
    assert.equal(first.body.data.destroyed, false);
    assert.equal((await put({ data: { secret: "two", n: 5, b: true } })).body.data.version, 2);
    const latest = await call("GET", `data/${path}`);
    assert.deepEqual(latest.body.data.data, { secret: "two", n: 5, b: true });
    assert.equal(latest.body.data.metadata.version, 2);
    assert.match(latest.body.request_id, /^[0-9a-f-]{36}$/);
    assert.equal(latest.body.lease_id, "");
    assert.deepEqual((await call("GET", `data/${path}?version=1`)).body.data.data, { secret: "one" });
    assert.equal((await call("GET", `data/${path}?version=9`)).status, 404);
  });

  it("changes fields and leaves the others, as a new version", async () => {
    const patch = (json: unknown, type = "application/merge-patch+json") =>
      rawCall(vault.address, "PATCH", `/v1/ganglion/data/${path}`, {
        token: vault.rootToken,
        json,
        headers: { "content-type": type },
      });
    assert.equal((await patch({ data: { a: 1 } })).status, 404);
    await put({ data: { access: "one", refresh: "two", gone: "three" } });
    const changed = await patch({ data: { access: "four", gone: null, added: { deep: 1 } } });
    assert.equal(changed.status, 200);
    assert.equal(changed.body.data.version, 2);
    const after = { access: "four", refresh: "two", added: { deep: 1 } };
    assert.deepEqual((await call("GET", `data/${path}`)).body.data.data, after);
    assert.equal((await patch({ data: { access: "x" }, options: { cas: 1 } })).status, 400);
    assert.equal((await patch({ data: { access: "x" } }, "application/json")).status, 415);
    await call("DELETE", `data/${path}`);
    assert.equal((await patch({ data: { access: "x" } })).status, 404);
  });

  it("checks and sets", async () => {
    assert.equal((await put({ data: { a: 1 }, options: { cas: 0 } })).status, 200);
    const late = await put({ data: { a: 2 }, options: { cas: 0 } });
    assert.equal(late.status, 400);
    assert.match(late.body.errors[0], /check-and-set parameter did not match the current version/);
    assert.equal((await put({ data: { a: 2 }, options: { cas: 1 } })).body.data.version, 2);
    const bad = await put({ data: { a: 2 }, options: { cas: "foo" } });
    assert.equal(bad.status, 400);
    assert.match(bad.body.errors[0], /check-and-set/);
  });

  it("of many writers with the same version one wins", async () => {
    const replies = await Promise.all(
      Array.from({ length: 8 }, (_, n) => put({ data: { n }, options: { cas: 0 } })),
    );
    assert.equal(replies.filter(({ status }) => status === 200).length, 1);
    assert.equal(replies.filter(({ status }) => status === 400).length, 7);
    assert.equal((await call("GET", `data/${path}`)).body.data.metadata.version, 1);
  });

  it("a deleted version is a 404 with data null and its metadata; undelete brings it back [A116]", async () => {
    await put({ data: { secret: "gone" } });
    assert.equal((await call("DELETE", `data/${path}`)).status, 204);
    const gone = await call("GET", `data/${path}`);
    assert.equal(gone.status, 404);
    assert.equal(gone.body.data.data, null);
    assert.notEqual(gone.body.data.metadata.deletion_time, "");
    assert.equal(gone.body.errors, undefined);
    assert.equal((await call("POST", `undelete/${path}`, { versions: [1] })).status, 204);
    assert.deepEqual((await call("GET", `data/${path}`)).body.data.data, { secret: "gone" });
  });

  it("a destroyed version does not come back", async () => {
    await put({ data: { secret: newSecret() } });
    assert.equal((await call("POST", `destroy/${path}`, { versions: [1] })).status, 204);
    const gone = await call("GET", `data/${path}`);
    assert.equal(gone.status, 404);
    assert.equal(gone.body.data.data, null);
    assert.equal(gone.body.data.metadata.destroyed, true);
    await call("POST", `undelete/${path}`, { versions: [1] });
    assert.equal((await call("GET", `data/${path}`)).status, 404);
    assert.equal((await call("POST", `destroy/${path}`, {})).status, 400);
  });

  it("a path that never was is a 404 without errors and without data [A116]", async () => {
    const reply = await call("GET", `data/${path}`);
    assert.equal(reply.status, 404);
    assert.deepEqual(reply.body, { errors: [] });
  });

  it("a path without data/ is a 404 whose warning says why, and never the secret [B124] [M16]", async () => {
    const secret = newSecret();
    await put({ data: { secret } });
    for (const [method, json] of [["GET"], ["POST", { data: { secret } }], ["DELETE"]] as const) {
      const reply = await call(method, path, json);
      assert.equal(reply.status, 404);
      assert.equal(reply.body.errors, undefined);
      assert.equal(reply.body.data, null);
      assert.match(reply.body.warnings[0], /Invalid path for a versioned K\/V secrets engine/);
      assert.ok(!reply.text.includes(secret));
    }
  });

  it("shows metadata without values, and forgets a path with it", async () => {
    const secret = newSecret();
    await put({ data: { secret } });
    await put({ data: { secret } });
    const metadata = await call("GET", `metadata/${path}`);
    assert.equal(metadata.body.data.current_version, 2);
    assert.deepEqual(Object.keys(metadata.body.data.versions), ["1", "2"]);
    assert.ok(!metadata.text.includes(secret));
    const folder = path.split("/").slice(0, -1).join("/");
    assert.deepEqual((await call("GET", `metadata/${folder}?list=true`)).body.data.keys, ["one"]);
    assert.equal((await call("DELETE", `metadata/${path}`)).status, 204);
    assert.deepEqual((await call("GET", `data/${path}`)).body, { errors: [] });
    assert.equal((await call("GET", `metadata/${folder}?list=true`)).status, 404);
    assert.equal((await put({ data: { secret }, options: { cas: 0 } })).body.data.version, 1);
  });

  it("keeps as many versions as the metadata says", async () => {
    const settings = { max_versions: 2, cas_required: true, custom_metadata: { owner: "a" } };
    assert.equal((await call("POST", `metadata/${path}`, settings)).status, 204);
    const without = await put({ data: { n: 0 } });
    assert.equal(without.status, 400);
    assert.match(without.body.errors[0], /check-and-set parameter required/);
    for (const cas of [0, 1, 2]) assert.equal((await put({ data: { cas }, options: { cas } })).status, 200);
    const { data } = (await call("GET", `metadata/${path}`)).body;
    assert.deepEqual(Object.keys(data.versions), ["2", "3"]);
    assert.deepEqual(data.custom_metadata, { owner: "a" });
    assert.equal((await call("GET", `data/${path}?version=1`)).status, 404);
  });

  it("wants data", async () => {
    for (const json of [{}, { secret: "x" }]) {
      const reply = await put(json);
      assert.equal(reply.status, 400);
      assert.match(reply.body.errors[0], /no data provided/);
    }
  });
});
