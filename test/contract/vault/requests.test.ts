import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { VaultHttp, VaultRefusal } from "../../../services/cli/up/vault-http.ts";
import { newSecret } from "./kit/logins.ts";
import { rawCall } from "./kit/raw-call.ts";
import {
  type LocalVault,
  type SharedVault,
  SLOW_MS,
  sharedVault,
  startVault,
  writeCertificates,
} from "./kit/test-vault.ts";

describe("requests and their errors", () => {
  let vault: SharedVault;

  before(async function () {
    this.timeout(SLOW_MS);
    vault = await sharedVault();
  });

  const call = (method: string, path: string, extra: object = {}) =>
    rawCall(vault.address, method, path, { token: vault.rootToken, ...extra });

  it("unknown mounts, paths and operations are told apart", async () => {
    const mount = await call("GET", "/v1/nowhere/x");
    assert.equal(mount.status, 404);
    assert.match(mount.body.errors[0], /no handler for route "nowhere\/x"/);
    const path = await call("GET", "/v1/sys/nowhere");
    assert.equal(path.status, 404);
    assert.match(path.body.errors[0], /unsupported path/);
    const operation = await call("DELETE", "/v1/sys/mounts");
    assert.equal(operation.status, 405);
    assert.match(operation.body.errors[0], /unsupported operation/);
    assert.equal((await call("GET", "/elsewhere")).status, 404);
  });

  it("a body that is no JSON object is refused without being repeated", async () => {
    const secret = newSecret();
    for (const text of [`{"data": {"secret": "${secret}`, `[1, "${secret}"]`]) {
      const reply = await call("POST", "/v1/ganglion/data/tests/json", { text });
      assert.equal(reply.status, 400);
      assert.match(reply.body.errors[0], /failed to decode JSON input/);
      assert.ok(!reply.text.includes(secret));
    }
  });

  it("a path that leaves its place is not followed [A113]", async () => {
    const climbing = await call("GET", "/v1/ganglion/data/../../sys/mounts");
    assert.equal(climbing.status, 307);
    assert.equal(climbing.headers.location, "/v1/sys/mounts");
    const hidden = await call("GET", "/v1/ganglion/data/%2e%2e/%2e%2e/sys/mounts");
    assert.equal(hidden.status, 400);
    assert.deepEqual(hidden.body.errors, ["relative paths not supported"]);
  });

  it("answers are not cached, and headers of Vault's clients are taken", async () => {
    const reply = await call("GET", "/v1/auth/token/lookup-self", { headers: { "x-vault-request": "true" } });
    assert.equal(reply.status, 200);
    assert.equal(reply.headers["cache-control"], "no-store");
    assert.match(String(reply.headers["content-type"]), /application\/json/);
    const bearer = await rawCall(vault.address, "GET", "/v1/auth/token/lookup-self", {
      headers: { authorization: `Bearer ${vault.rootToken}` },
    });
    assert.equal(bearer.status, 200);
  });

  it("a mount that exists is not made again", async () => {
    const reply = await call("POST", "/v1/sys/mounts/ganglion", {
      json: { type: "kv", options: { version: "2" } },
    });
    assert.equal(reply.status, 400);
    assert.match(reply.body.errors[0], /path is already in use at ganglion\//);
  });
});

describe("our own calls to Vault", () => {
  let folder: LocalVault;
  const servers: Server[] = [];

  before(async function () {
    this.timeout(120_000);
    folder = await startVault();
  });

  after(async () => {
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
    await folder.stop();
  });

  const own = (name: string) => readFileSync(join(folder.tlsDir, name));

  async function answerWith(
    handler: Parameters<typeof createServer>[1],
    identity: { cert: Buffer; key: Buffer } = { cert: own("cert.pem"), key: own("key.pem") },
  ): Promise<string> {
    const server = createServer(identity, handler);
    servers.push(server);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  const refusal = async (http: VaultHttp, token?: string): Promise<VaultRefusal> => {
    const call = http.call("GET", "sys/mounts", token === undefined ? {} : { token });
    const error = await call.then(
      () => assert.fail("was not refused"),
      (cause: unknown) => cause,
    );
    assert.ok(error instanceof VaultRefusal);
    return error;
  };

  it("follow no redirect, so that no token reaches another server [A115] [M14]", async () => {
    const seen: unknown[] = [];
    const evil = await answerWith((message, reply) => {
      seen.push(message.headers);
      reply.end("{}");
    });
    for (const status of [301, 302, 303, 307, 308]) {
      const addr = await answerWith((_message, reply) => {
        reply.writeHead(status, { location: `${evil}/v1/sys/mounts` }).end();
      });
      const http = new VaultHttp({ ...folder.address, addr });
      assert.equal((await refusal(http, "hvs.secret")).status, status);
      await http.close();
    }
    assert.deepEqual(seen, []);
  });

  it("end in time when no answer comes [M15]", async () => {
    const addr = await answerWith(() => {});
    const http = new VaultHttp({ ...folder.address, addr, timeoutMs: 200 });
    assert.equal((await refusal(http, "hvs.secret")).status, 0);
    await http.close();
  });

  it("name neither token nor body in an error [A117] [M13]", async () => {
    const secret = newSecret();
    const closed = new VaultHttp({ ...folder.address, addr: "https://127.0.0.1:1" });
    const page = await answerWith((_message, reply) => reply.writeHead(502).end("<html>bad gateway</html>"));
    const broken = new VaultHttp({ ...folder.address, addr: page });
    for (const http of [closed, broken]) {
      const error = await http
        .call("POST", "ganglion/data/x", { token: secret, body: { data: { secret } } })
        .then(
          () => assert.fail("was not refused"),
          (cause: unknown) => cause as VaultRefusal,
        );
      const everything = `${JSON.stringify(error)} ${error.stack} ${String(error.cause)} ${error.message}`;
      assert.ok(!everything.includes(secret));
      assert.match(error.message, /vault ganglion\/data\/x/);
      await http.close();
    }
  });

  it("speak to nobody whose certificate another authority signed", async () => {
    const caPem = await writeCertificates(join(folder.folder, "other-tls"));
    const http = new VaultHttp({ addr: folder.address.addr, caPem });
    assert.equal((await refusal(http, "hvs.secret")).status, 0);
    await http.close();
  });

  it("speak to no other service of the mesh that has taken the vault's port", async () => {
    for (const [service, isTaken] of [
      ["harness", false],
      ["vault", true],
    ] as const) {
      const tlsDir = join(folder.folder, `tls-${service}`);
      const caPem = await writeCertificates(tlsDir, service);
      const read = (name: string) => readFileSync(join(tlsDir, name));
      let seen = 0;
      const addr = await answerWith(
        (_message, reply) => {
          seen += 1;
          reply.end("{}");
        },
        { cert: read("cert.pem"), key: read("key.pem") },
      );
      const http = new VaultHttp({ addr, caPem });
      if (isTaken) assert.equal((await http.call("GET", "sys/mounts", { token: "hvs.secret" })).status, 200);
      else assert.equal((await refusal(http, "hvs.secret")).status, 0);
      assert.equal(seen, isTaken ? 1 : 0);
      await http.close();
    }
  });

  it("use https only", () => {
    assert.throws(() => new VaultHttp({ addr: "http://127.0.0.1:8200" }), /https/);
    assert.throws(() => new VaultHttp({ addr: "https://user:word@127.0.0.1:8200" }), /https/);
  });
});
