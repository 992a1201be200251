import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { rawCall } from "./kit/raw-call.ts";
import { type SharedVault, SLOW_MS, sharedVault } from "./kit/test-vault.ts";

describe("policies", () => {
  let vault: SharedVault;
  const written: string[] = [];

  before(async function () {
    this.timeout(SLOW_MS);
    vault = await sharedVault();
  });

  after(async () => {
    for (const name of written) await root("DELETE", `sys/policies/acl/${name}`);
  });

  const root = (method: string, path: string, json?: unknown) =>
    rawCall(vault.address, method, `/v1/${path}`, { token: vault.rootToken, json });

  async function write(policy: string): Promise<{ name: string; status: number; errors: string[] }> {
    const name = `test-${randomBytes(6).toString("hex")}`;
    const reply = await root("PUT", `sys/policies/acl/${name}`, { policy });
    if (reply.status === 204) written.push(name);
    return { name, status: reply.status, errors: reply.body?.errors ?? [] };
  }

  /** Makes a token with these policies and tells what it may do at some paths. */
  async function granted(policies: string[], ...paths: string[]): Promise<Record<string, string>> {
    const names = [];
    for (const policy of policies) {
      const { name, status, errors } = await write(policy);
      assert.equal(status, 204, errors.join());
      names.push(name);
    }
    const token = await tokenWith(names);
    const { body } = await root("POST", "sys/capabilities", { token, paths });
    const found = (body.data ?? body) as Record<string, string[]>;
    return Object.fromEntries(paths.map((path) => [path, (found[path] as string[]).sort().join(" ")]));
  }

  async function tokenWith(policies: string[]): Promise<string> {
    const asked = { policies, no_default_policy: true, ttl: "5m" };
    return (await root("POST", "auth/token/create", asked)).body.auth.client_token as string;
  }

  it("grant what they name and nothing else", async () => {
    const policy = 'path "ganglion/data/a" { capabilities = ["read", "list"] }';
    assert.deepEqual(await granted([policy], "ganglion/data/a", "ganglion/data/ab", "ganglion/data/a/b"), {
      "ganglion/data/a": "list read",
      "ganglion/data/ab": "deny",
      "ganglion/data/a/b": "deny",
    });
  });

  it("an exact path beats a pattern, and the more specific pattern the wider one", async () => {
    const policy = `
      # comments and all
      path "ganglion/*" { capabilities = ["read"] }
      path "ganglion/data/*" { capabilities = ["update"] }   // the longer prefix
      path "ganglion/data/team/+/keys" { capabilities = ["delete"] }
      path "ganglion/data/team/a*" { capabilities = ["create"] }
      path "ganglion/data/exact" { capabilities = ["list"] } /* alone */
      path "ganglion/+/other/*" { capabilities = ["create", "list"] }
    `;
    assert.deepEqual(
      await granted(
        [policy],
        "ganglion/x",
        "ganglion/data/x/y",
        "ganglion/data/exact",
        "ganglion/data/team/b/keys",
        "ganglion/data/team/abc/keys",
        "ganglion/data/team/b/c/keys",
        "ganglion/data/other/x",
        "ganglion/more/other/x",
        "other",
      ),
      {
        "ganglion/x": "read",
        "ganglion/data/x/y": "update",
        "ganglion/data/exact": "list",
        "ganglion/data/team/b/keys": "delete",
        "ganglion/data/team/abc/keys": "create",
        "ganglion/data/team/b/c/keys": "update",
        "ganglion/data/other/x": "update",
        // Both begin to vary at the same place; the one with fewer "+" wins.
        "ganglion/more/other/x": "read",
        other: "deny",
      },
    );
  });

  it("of several add up, and deny wins", async () => {
    const paths = ["ganglion/data/a", "ganglion/data/b"];
    const both = 'path "ganglion/data/+" { capabilities = ["read"] }';
    const more =
      'path "ganglion/data/+" { capabilities = ["update"] } path "ganglion/data/b" { capabilities = ["deny"] }';
    assert.deepEqual(await granted([both, more], ...paths), {
      "ganglion/data/a": "read update",
      "ganglion/data/b": "deny",
    });
    const denied = 'path "ganglion/data/+" { capabilities = ["read", "deny"] }';
    assert.deepEqual(await granted([both, denied], "ganglion/data/a"), { "ganglion/data/a": "deny" });
  });

  it("are read from JSON too", async () => {
    const policy = JSON.stringify({ path: { "ganglion/data/j/*": { capabilities: ["read"] } } });
    assert.deepEqual(await granted([policy], "ganglion/data/j/x"), { "ganglion/data/j/x": "read" });
  });

  it("without an identity grant nothing where they are templated on one", async () => {
    const policy = `
      path "ganglion/data/{{identity.entity.name}}/*" { capabilities = ["read"] }
      path "ganglion/data/{{identity.entity.id}}" { capabilities = ["read"] }
    `;
    const paths = ["ganglion/data/x/y", "ganglion/data//y", "ganglion/data/{{identity.entity.name}}/y"];
    const found = await granted([policy], ...paths);
    for (const path of paths) assert.equal(found[path], "deny", path);
  });

  it("are filled in with the identity of the caller", async () => {
    const { name } = await write(`
      path "ganglion/data/by-id/{{identity.entity.id}}" { capabilities = ["read"] }
      path "ganglion/data/by-name/{{identity.entity.name}}/*" { capabilities = ["read"] }
      path "ganglion/data/by-metadata/{{identity.entity.metadata.team}}" { capabilities = ["read"] }
      path "ganglion/data/by-nothing/{{identity.entity.metadata.missing}}" { capabilities = ["read"] }
    `);
    const entityName = `test-${randomBytes(6).toString("hex")}`;
    const entity = (await root("POST", "identity/entity", { name: entityName, metadata: { team: "blue" } }))
      .body.data;
    const accessor = (await root("GET", "sys/auth")).body.data["token/"].accessor;
    const alias = { name: entityName, canonical_id: entity.id, mount_accessor: accessor };
    assert.equal((await root("POST", "identity/entity-alias", alias)).status, 200);
    await root("POST", "auth/token/roles/ganglion-test", {
      allowed_policies: [name],
      allowed_entity_aliases: [entityName],
      orphan: true,
      token_no_default_policy: true,
    });
    const made = await root("POST", "auth/token/create/ganglion-test", { entity_alias: entityName });
    assert.equal(made.body.auth.entity_id, entity.id);
    const paths = {
      [`ganglion/data/by-id/${entity.id}`]: ["read"],
      [`ganglion/data/by-id/${entityName}`]: ["deny"],
      [`ganglion/data/by-name/${entityName}/x`]: ["read"],
      [`ganglion/data/by-name/${entityName}x/x`]: ["deny"],
      "ganglion/data/by-metadata/blue": ["read"],
      "ganglion/data/by-metadata/red": ["deny"],
      "ganglion/data/by-nothing/": ["deny"],
    };
    const token = made.body.auth.client_token;
    const reply = await root("POST", "sys/capabilities", { token, paths: Object.keys(paths) });
    const found = (reply.body.data ?? reply.body) as Record<string, string[]>;
    for (const [path, expected] of Object.entries(paths)) assert.deepEqual(found[path], expected, path);
    await root("DELETE", "auth/token/roles/ganglion-test");
    await root("DELETE", `identity/entity/id/${entity.id}`);
    const lookup = await rawCall(vault.address, "GET", "/v1/ganglion/data/by-metadata/blue", { token });
    assert.equal(lookup.status, 403);
  });

  it("limit parameters, also when another policy does not", async () => {
    const limited = await write(`
      path "ganglion/data/limited" {
        capabilities = ["create", "update"]
        allowed_parameters = { "data" = [], "options" = [] }
        denied_parameters = { "extra" = [] }
        required_parameters = ["options"]
      }
    `);
    const open = await write('path "ganglion/data/limited" { capabilities = ["create", "update"] }');
    for (const names of [[limited.name], [limited.name, open.name]]) {
      const token = await tokenWith(names);
      const status = async (json: unknown) =>
        (await rawCall(vault.address, "POST", "/v1/ganglion/data/limited", { token, json })).status;
      assert.equal(await status({ data: { a: 1 }, options: {} }), 200);
      assert.equal(await status({ data: { a: 1 } }), 403);
      assert.equal(await status({ data: { a: 1 }, options: {}, other: 1 }), 403);
      assert.equal(await status({ data: { a: 1 }, options: {}, extra: 1 }), 403);
    }
  });

  it("ask for wrapping", async () => {
    const { name } = await write(`
      path "sys/wrapping/wrap" {
        capabilities = ["update"]
        min_wrapping_ttl = "10s"
        max_wrapping_ttl = "1m"
      }
    `);
    const token = await tokenWith([name]);
    const status = async (ttl?: string) =>
      (
        await rawCall(vault.address, "POST", "/v1/sys/wrapping/wrap", {
          token,
          json: { a: 1 },
          headers: ttl === undefined ? {} : { "x-vault-wrap-ttl": ttl },
        })
      ).status;
    assert.equal(await status("30s"), 200);
    assert.equal(await status("5s"), 403);
    assert.equal(await status("2m"), 403);
    assert.equal(await status(), 403);
  });

  it("cover the listing of a folder by its name, with or without a slash, and by what is in it", async () => {
    await root("POST", "ganglion/data/tests/folder/one", { data: { a: 1 } });
    const expected = { "": 200, "/": 200, "/*": 200, "/one": 403, x: 403 };
    for (const [end, status] of Object.entries(expected)) {
      const { name } = await write(`path "ganglion/metadata/tests/folder${end}" { capabilities = ["list"] }`);
      const token = await tokenWith([name]);
      for (const path of ["folder?list=true", "folder/?list=true"]) {
        const reply = await rawCall(vault.address, "GET", `/v1/ganglion/metadata/tests/${path}`, { token });
        assert.equal(reply.status, status, `${end} ${path}`);
      }
    }
  });

  it("need sudo where the path does", async () => {
    const { name } = await write(
      'path "sys/auth/*" { capabilities = ["read"] } path "sys/auth" { capabilities = ["read"] }',
    );
    const token = await tokenWith([name]);
    assert.equal((await rawCall(vault.address, "GET", "/v1/sys/auth", { token })).status, 200);
    assert.equal((await rawCall(vault.address, "GET", "/v1/sys/auth/approle", { token })).status, 403);
  });

  it("that are not understood are refused as a whole", async () => {
    for (const policy of [
      'path "x" { capabilities = ["foo"] }',
      'path "x" { capabilities = ["read"]',
      'path "x" { capabilities = ["read"] bogus = 1 }',
      'path "x/+*" { capabilities = ["read"] }',
      'paths "x" { capabilities = ["read"] }',
      '{"path": {"x": {"capabilities": "read"',
      "",
    ]) {
      const { status, errors } = await write(policy);
      assert.equal(status, 400, policy);
      assert.equal(errors.length, 1);
    }
  });

  it("can be read back, listed and removed; the built-in ones stay", async () => {
    const policy = 'path "x" { capabilities = ["read"] }';
    const { name } = await write(policy);
    assert.equal((await root("GET", `sys/policies/acl/${name}`)).body.data.policy, policy);
    assert.ok((await root("GET", "sys/policies/acl?list=true")).body.data.keys.includes(name));
    assert.equal((await root("DELETE", `sys/policies/acl/${name}`)).status, 204);
    assert.equal((await root("GET", `sys/policies/acl/${name}`)).status, 404);
    assert.equal((await root("DELETE", "sys/policies/acl/default")).status, 400);
    assert.equal((await root("DELETE", "sys/policies/acl/root")).status, 400);
    assert.equal((await root("PUT", "sys/policies/acl/root", { policy })).status, 400);
  });
});
