import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer as createPlainServer } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { loadProxyKeys } from "../../../services/mcp-proxy/vault/proxy-keys.ts";
import { logIn } from "../../../services/mcp-proxy/vault/proxy-login.ts";
import { createTransport } from "../../../services/mcp-proxy/vault/transport.ts";
import { createVaultClient, type VaultClient } from "../../../services/mcp-proxy/vault/vault-client.ts";
import { VaultFailure } from "../../../services/mcp-proxy/vault/vault-failure.ts";
import { watchDenials } from "../../../services/mcp-proxy/vault/watch-denials.ts";
import { WrongMount } from "../../../services/mcp-proxy/vault/wrong-mount.ts";
import { TestCa } from "../../kit/ca.ts";

const TOKEN = `hvs.${randomBytes(24).toString("hex")}`;
const SECRET = `cnry_${randomBytes(24).toString("hex")}`;

describe("the way to Vault", () => {
  let ca: TestCa;
  let server: Server;
  let client: VaultClient;
  let answer: (request: IncomingMessage, response: ServerResponse) => void = () => {};
  const seen: IncomingMessage[] = [];

  const serve = async (service: string) => {
    const made = createServer((await ca.bundle(service)).contextOptions(), (request, response) => {
      seen.push(request);
      answer(request, response);
    });
    made.listen(0, "127.0.0.1");
    await once(made, "listening");
    return made;
  };
  const addressOf = (of: Server) => `https://127.0.0.1:${(of.address() as AddressInfo).port}`;
  const clientOf = (of: Server) => createVaultClient(addressOf(of), createTransport(ca.authority.certPem));

  before(async () => {
    ca = await TestCa.create();
    server = await serve("vault");
    client = clientOf(server);
  });

  after(async () => {
    await client.close();
    server.closeAllConnections();
    server.close();
    ca.remove();
  });

  const failure = async (work: Promise<unknown>): Promise<VaultFailure> => {
    try {
      await work;
    } catch (error) {
      assert.ok(error instanceof VaultFailure, inspect(error));
      const shown = inspect(error, { depth: 9, showHidden: true }) + JSON.stringify(error) + error.stack;
      assert.ok(
        !shown.includes(TOKEN) && !shown.includes(SECRET),
        "an error shows what was sent or answered",
      );
      return error;
    }
    throw new Error("was not refused");
  };
  const reply = (status: number, body: string, headers: Record<string, string> = {}) => {
    answer = (_request, response) => response.writeHead(status, headers).end(body);
  };

  for (const [status, body, kind] of [
    [503, '{"errors":["Vault is sealed"]}', "sealed"],
    [429, "{}", "standby"],
    [472, "{}", "standby"],
    [473, "{}", "standby"],
    [403, `{"errors":["permission denied ${SECRET}"]}`, "denied"],
    [404, '{"errors":[]}', "not_found"],
    [404, '{"warnings":["Invalid path for a versioned K/V secrets engine"]}', "misrouted"],
    [400, `{"errors":["${SECRET}"]}`, "bad_request"],
    [500, '{"errors":["no audit backend succeeded in logging the request"]}', "server"],
    [200, `<html>${SECRET}</html>`, "malformed"],
    [200, `"${SECRET}"`, "malformed"],
    [200, `{"data":"${"x".repeat(2 << 20)}"}`, "malformed"],
  ] as const) {
    it(`status ${status}, ${body.length < 100 ? "short" : "long"}, is "${kind}" and says nothing of the exchange [A116] [A117] [A126] [M13] [M16]`, async () => {
      reply(status, body);
      assert.equal(
        (await failure(client.write("ganglion/data/x", { data: { secret: SECRET } }, TOKEN))).kind,
        kind,
      );
    });
  }

  it("follows no redirect: the other host hears nothing [A115] [M14]", async () => {
    let reached = 0;
    const other = createPlainServer(() => {
      reached += 1;
    });
    other.listen(0, "127.0.0.1");
    await once(other, "listening");
    reply(307, "", { location: `http://127.0.0.1:${(other.address() as AddressInfo).port}/v1/x` });
    assert.equal((await failure(client.read("ganglion/data/x", TOKEN))).kind, "redirect");
    assert.equal(reached, 0);
    other.close();
  });

  it("gives up on a server that never answers [A116] [M15]", async function () {
    this.timeout(15_000);
    answer = () => {};
    const startedAt = Date.now();
    assert.equal((await failure(client.read("ganglion/data/x", TOKEN))).kind, "timeout");
    assert.ok(Date.now() - startedAt < 6000);
  });

  it("talks to the vault only, though every service's certificate is good for this machine", async () => {
    const impostor = await serve("harness");
    const before = seen.length;
    const tricked = clientOf(impostor);
    assert.equal((await failure(tricked.read("ganglion/data/x", TOKEN))).kind, "unreachable");
    assert.equal(seen.length, before);
    await tricked.close();
    impostor.close();
  });

  it("trusts no other authority, and says no more than that nobody is there", async () => {
    const stranger = await TestCa.create();
    const distrusting = createVaultClient(addressOf(server), createTransport(stranger.authority.certPem));
    assert.equal((await failure(distrusting.read("ganglion/data/x", TOKEN))).kind, "unreachable");
    await distrusting.close();
    stranger.remove();
    const nowhere = createVaultClient("https://127.0.0.1:1", createTransport(ca.authority.certPem));
    assert.equal((await failure(nowhere.write("x", { secret: SECRET }, TOKEN))).kind, "unreachable");
    await nowhere.close();
  });

  it("sends each call's own token, whatever runs beside it [A121]", async () => {
    answer = (request, response) =>
      response.end(JSON.stringify({ data: { saw: request.headers["x-vault-token"] } }));
    const tokens = Array.from({ length: 50 }, (_, i) => `token-${i}`);
    const answers = await Promise.all(tokens.map((token) => client.read("x", token)));
    assert.deepEqual(
      answers.map(({ data }) => data?.saw),
      tokens,
    );
  });

  it("knows nothing of proxies in the environment [A021]", async () => {
    let reached = 0;
    const proxy = createPlainServer(() => {
      reached += 1;
    });
    proxy.on("connect", () => {
      reached += 1;
    });
    proxy.listen(0, "127.0.0.1");
    await once(proxy, "listening");
    process.env.HTTPS_PROXY = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    try {
      reply(200, "{}");
      await client.read("x", TOKEN);
      assert.equal(reached, 0);
    } finally {
      delete process.env.HTTPS_PROXY;
      proxy.close();
    }
  });

  /** Plays a login whose token lives that many seconds, and each renewal of it. */
  const playLogin = (lifeSeconds: number, renewal: (count: number) => [number, object]) => {
    const renewals: number[] = [];
    answer = (request, response) => {
      const send = (status: number, body: object) => response.writeHead(status).end(JSON.stringify(body));
      if (request.url === "/v1/sys/wrapping/unwrap") return send(200, { data: { secret_id: "s" } });
      if (request.url === "/v1/auth/approle/login") {
        return send(200, { auth: { client_token: TOKEN, lease_duration: lifeSeconds, renewable: true } });
      }
      if (request.url !== "/v1/auth/token/renew-self") return send(403, { errors: ["permission denied"] });
      renewals.push(Date.now());
      return send(...renewal(renewals.length));
    };
    return renewals;
  };
  const bootstrap = { role_id: "r", wrapped_secret_id: "w" };

  it("is renewed at about two thirds of its life, again and again, with nobody calling [B121]", async function () {
    this.timeout(30_000);
    const enough = Promise.withResolvers<void>();
    const startedAt = Date.now();
    const renewals = playLogin(6, (count) => {
      if (count === 3) enough.resolve();
      return [200, { auth: { lease_duration: 6 } }];
    });
    const login = await logIn(client, bootstrap, { onLost: assert.fail, onRenewalFailed: assert.fail });
    const keep = setInterval(() => {}, 1000);
    await enough.promise;
    clearInterval(keep);
    const gaps = renewals.map((at, index) => at - (renewals[index - 1] ?? startedAt));
    for (const gap of gaps) assert.ok(gap > 3600 && gap < 5900, `${gaps}`);
    assert.ok(Date.now() - startedAt > 10_000 && login.isAlive());
    login.close();
  });

  it("finds out about a revoked login with the first call that is refused, not with the next renewal [B120]", async () => {
    const renewals = playLogin(3600, () => [403, { errors: ["permission denied"] }]);
    const lost = Promise.withResolvers<VaultFailure | undefined>();
    const login = await logIn(client, bootstrap, { onLost: lost.resolve, onRenewalFailed: assert.fail });
    const watched = watchDenials(client, login);
    // Another token's refusal says nothing of the login.
    await failure(watched.read("ganglion/data/x", "hvs.of-a-session"));
    assert.equal(renewals.length, 0);
    await failure(watched.write("auth/token/create/ganglion-session", {}, login.token()));
    assert.equal((await lost.promise)?.kind, "denied");
    assert.equal(login.isAlive(), false);
    login.close();
  });

  it("keeps a good login when a call is refused for another reason, and does not ask each time [B120]", async () => {
    const renewals = playLogin(3600, () => [200, { auth: { lease_duration: 3600 } }]);
    const login = await logIn(client, bootstrap, { onLost: assert.fail, onRenewalFailed: assert.fail });
    const watched = watchDenials(client, login);
    for (let calls = 0; calls < 5; calls += 1) await failure(watched.remove("x", login.token()));
    const patched = await failure(watched.patch("x", {}, login.token()));
    assert.equal(patched.kind, "denied");
    assert.equal(renewals.length, 1);
    assert.ok(login.isAlive());
    login.close();
  });

  it("names the path when the mount is not KV version 2, before a key is believed [B124] [M16]", async () => {
    const stored = { options: { cas: 0 }, data: { key: SECRET } };
    const mounts: [string, (method: string) => [number, object]][] = [
      // A version 1 mount keeps what it is given, and answers that.
      ["version 1, empty", (method) => (method === "GET" ? [404, { errors: [] }] : [204, {}])],
      ["version 1, written before", () => [200, { data: stored }]],
      ["a path without data/", () => [404, { data: null, warnings: ["Invalid path for a versioned K/V"] }]],
      ["no mount", () => [404, { errors: ["no handler for route"] }]],
    ];
    for (const [what, play] of mounts) {
      answer = (request, response) => {
        const [status, body] = play(request.method ?? "");
        response.writeHead(status).end(status === 204 ? undefined : JSON.stringify(body));
      };
      const error = await loadProxyKeys(client, "secret", TOKEN).catch((thrown: unknown) => thrown);
      assert.ok(error instanceof WrongMount, `${what}: ${inspect(error)}`);
      assert.match(error.message, /^secret\/ is no KV version 2 mount .*secret\/data\/proxy\/mac-key/);
      assert.ok(!inspect(error).includes(SECRET));
    }
  });

  it("trusts no certificate that has expired [A116]", async () => {
    const dir = await ca.bundle("vault", "vault-old", {
      notBefore: new Date(Date.now() - 7_200_000),
      lifeMs: 3_600_000,
    });
    const old = createServer(dir.contextOptions(), (_request, response) => response.end("{}"));
    old.listen(0, "127.0.0.1");
    await once(old, "listening");
    const late = clientOf(old);
    assert.equal((await failure(late.read("ganglion/data/x", TOKEN))).kind, "unreachable");
    await late.close();
    old.close();
  });

  it("survives a renewal that fails once, and tells when the token is really gone [A119]", async function () {
    this.timeout(15_000);
    let renewals = 0;
    answer = (request, response) => {
      const send = (status: number, body: object) => response.writeHead(status).end(JSON.stringify(body));
      if (request.url === "/v1/sys/wrapping/unwrap") return send(200, { data: { secret_id: "s" } });
      if (request.url === "/v1/auth/approle/login") {
        return send(200, { auth: { client_token: TOKEN, lease_duration: 2, renewable: true } });
      }
      renewals += 1;
      if (renewals === 1) return send(503, {});
      if (renewals === 2) return send(200, { auth: { lease_duration: 6 } });
      return send(403, {});
    };
    const failed: string[] = [];
    const lost = Promise.withResolvers<VaultFailure | undefined>();
    const login = await logIn(
      client,
      { role_id: "r", wrapped_secret_id: "w" },
      {
        onLost: lost.resolve,
        onRenewalFailed: ({ kind }) => failed.push(kind),
      },
    );
    assert.equal(login.token(), TOKEN);
    const keep = setInterval(() => {}, 1000);
    assert.equal((await lost.promise)?.kind, "denied");
    clearInterval(keep);
    assert.deepEqual(failed, ["sealed"]);
    assert.equal(login.isAlive(), false);
    login.close();
  });
});
