import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { createClient } from "../../../services/common/grpc/create-client.ts";
import { newTraceparent } from "../../../services/common/telemetry/trace-context.ts";
import {
  HealthService,
  HealthCheckResponse_ServingStatus as Status,
} from "../../../services/gen/grpc/health/v1/health.ts";
import { type RunningService, runService, startService } from "../../kit/start-service.ts";
import { Fixture, type SessionClient, WATCH } from "./fixture.ts";

const MAIN = new URL("./fixture-main.ts", import.meta.url);

describe("a service process", () => {
  let fixture: Fixture;
  let env: Record<string, string>;
  const running: RunningService[] = [];
  before(async () => {
    fixture = await Fixture.create();
    env = {
      GANGLION_INSTANCE: "session-1",
      GANGLION_TLS_DIR: await fixture.ca.directory("session"),
      GANGLION_ADMIN_LISTEN: "127.0.0.1:0",
    };
  });
  afterEach(() => Promise.all(running.splice(0).map((service) => service.stop())));
  after(() => fixture.stop());

  const start = async (more: Record<string, string> = {}, bootstrap?: object) => {
    const options = bootstrap ? { env: { ...env, ...more }, bootstrap } : { env: { ...env, ...more } };
    const service = await startService(MAIN, options);
    running.push(service);
    return { service, client: await fixture.client(service.listening.addr) };
  };
  const outcome = (call: Promise<unknown>) =>
    call.then(
      () => "OK",
      (error: unknown) => error as GanglionError,
    );
  const open = async (client: SessionClient) => {
    const tail = client.watchEvents(WATCH);
    await tail.next();
    return { tail, next: outcome(tail.next()) };
  };

  it("[B132][M06] SIGTERM: health first, tails ended with UNAVAILABLE and position, calls finished, exit in time", async () => {
    const { service, client } = await start({ GANGLION_DRAIN_GRACE_MS: "8000" });
    const health = createClient(
      HealthService,
      service.listening.addr,
      await fixture.ca.bundle("operator"),
      "session",
    );
    const watch = health.watch({ service: "" });
    assert.equal((await watch.next()).value?.status, Status.SERVING);
    const tails = await Promise.all(Array.from({ length: 50 }, () => open(client)));
    const slow = Array.from({ length: 5 }, () => outcome(client.getSession({ sessionId: "sesn_slow" })));
    // The slow calls have begun once a later call on the same connection was answered.
    await client.getSession({ sessionId: "sesn_1" });
    const startedAt = performance.now();
    service.process.kill("SIGTERM");
    assert.equal((await watch.next()).value?.status, Status.NOT_SERVING);
    for (const { next } of tails) {
      const error = await next;
      assert.ok(GanglionError.is(error, "DRAINING"), String(error));
      assert.equal(error.code, "UNAVAILABLE");
      assert.equal(error.metadata.position, "7");
    }
    assert.deepEqual(await Promise.all(slow), ["OK", "OK", "OK", "OK", "OK"]);
    assert.equal(await service.exit, 0);
    assert.ok(performance.now() - startedAt < 8000);
    health.close();
  });

  it("[M06] calls that do not finish are ended with UNAVAILABLE after the grace", async () => {
    const { service } = await start({ GANGLION_DRAIN_GRACE_MS: "300" });
    // Without retries: GetSession is idempotent, and a second try would find nobody.
    const client = await fixture.client(service.listening.addr, "operator", "session", { image: null });
    const hanging = outcome(client.getSession({ sessionId: "sesn_hangs" }));
    await client.getSession({ sessionId: "sesn_1" });
    service.process.kill("SIGTERM");
    const error = await hanging;
    assert.ok(GanglionError.is(error, "DRAINING"), String(error));
    assert.equal(await service.exit, 0);
  });

  it("a second signal stops it at once", async () => {
    const { service, client } = await start({ GANGLION_DRAIN_GRACE_MS: "60000" });
    const hanging = outcome(client.getSession({ sessionId: "sesn_hangs" }));
    const { next } = await open(client);
    service.process.kill("SIGTERM");
    await next;
    service.process.kill("SIGTERM");
    assert.equal(await service.exit, 0);
    assert.equal(((await hanging) as GanglionError).code, "UNAVAILABLE");
  });

  it("[B142] ends with 70 and a log line when an error escapes everything", async () => {
    for (const [sessionId, said] of [
      ["sesn_escapes", "uncaught exception"],
      ["sesn_floats", "unhandled rejection"],
    ] as const) {
      const { service, client } = await start();
      await outcome(client.getSession({ sessionId }));
      assert.equal(await service.exit, 70);
      assert.ok(service.lines().some((line) => line.level === "fatal" && line.msg === said));
    }
  });

  it("[A096] SIGUSR1 opens no inspector and the process lives", async () => {
    const { service, client } = await start();
    service.process.kill("SIGUSR1");
    await client.getSession({ sessionId: "sesn_1" });
    assert.ok(!service.output().includes("Debugger listening"));
    await assert.rejects(
      new Promise((resolve, reject) => {
        const socket = connect(9229, "127.0.0.1");
        socket.on("connect", resolve).on("error", reject);
      }),
      { code: "ECONNREFUSED" },
    );
    assert.equal(service.process.exitCode, null);
  });

  it("answers health, readiness and metrics on its admin port", async () => {
    const { service, client } = await start();
    await client.getSession({ sessionId: "sesn_1" });
    const get = (path: string) => fetch(`http://${service.listening.admin_addr}${path}`);
    assert.deepEqual(await (await get("/healthz")).json(), { ok: true });
    const parts = [
      { name: "session", ok: true },
      { name: "fixture", ok: true },
    ];
    assert.deepEqual(await (await get("/readyz")).json(), { ok: true, parts });
    const metrics = await (await get("/metrics")).text();
    assert.match(
      metrics,
      /grpc_server_handled_total\{[^}]*grpc_method="GetSession"[^}]*grpc_code="OK"[^}]*\} 1/,
    );
    assert.match(metrics, /nodejs_eventloop_lag_seconds/);
    assert.equal((await get("/other")).status, 404);
  });

  it("answers on its admin port to names of this machine only [A040]", async () => {
    const { service } = await start();
    const port = Number(service.listening.admin_addr?.split(":").at(-1));
    const status = async (host: string, path: string) => {
      const asked = request({ host: "127.0.0.1", port, path, headers: { host } }).end();
      const [response] = (await once(asked, "response")) as [IncomingMessage];
      response.resume();
      return response.statusCode;
    };
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`, "LOCALHOST", "127.0.0.1"])
      assert.equal(await status(host, "/healthz"), 200, host);
    for (const host of [
      `rebind.example:${port}`,
      "localhost.rebind.example",
      "127.0.0.1.rebind.example",
      "x",
    ])
      for (const path of ["/healthz", "/readyz", "/metrics"])
        assert.equal(await status(host, path), 421, host);
  });

  it("reads its bootstrap document once and says nothing of it", async () => {
    const secret = `planted-${crypto.randomUUID()}`;
    const { service, client } = await start({}, { postgres: { user: "u", password: secret } });
    await client.getSession({ sessionId: "sesn_1" });
    assert.ok(!service.output().includes(secret));
    const line = await service.line((entry) => entry.msg === "call");
    assert.equal(line.has_login, true);
    const broken = await runService(MAIN, { env: { ...env, GANGLION_BOOTSTRAP_FD: "3" } });
    assert.notEqual(broken.exit, 0);
    assert.match(broken.output, /bootstrap document is not a JSON object/);
  });

  it("logs one line a call, without metadata or messages", async () => {
    const { service, client } = await start();
    const secret = `planted-${crypto.randomUUID()}`;
    await client.getSession({ sessionId: "sesn_1" }, { metadata: { "ganglion-session-token": secret } });
    const line = await service.line((entry) => entry.msg === "call");
    assert.ok(!service.output().includes(secret));
    for (const key of [
      "ts",
      "level",
      "service",
      "instance",
      "version",
      "rpc",
      "code",
      "dur_ms",
      "trace_id",
      "peer",
      "role",
    ]) {
      assert.ok(line?.[key] !== undefined, key);
    }
    assert.equal(line?.session_id, "sesn_1");
  });

  describe("refuses to start", () => {
    it("with 78 and every problem listed, and no value shown", async () => {
      const secret = `planted-${crypto.randomUUID()}`;
      const { exit, output } = await runService(MAIN, {
        env: { GANGLION_LISTEN: "nowhere", GANGLION_TYPO: secret, GANGLION_LOG_LEVEL: "loud" },
        args: ["--fixture-ms", "x"],
      });
      assert.equal(exit, 78);
      for (const name of [
        "GANGLION_LISTEN must be host:port",
        "GANGLION_TYPO is not a setting",
        "GANGLION_LOG_LEVEL must be one of",
        "GANGLION_INSTANCE is required",
        "GANGLION_TLS_DIR is required",
        "GANGLION_FIXTURE_MS must be a whole number",
      ]) {
        assert.ok(output.includes(name), `${name} in ${output}`);
      }
      assert.ok(!output.includes(secret));
    });

    it("[A022] with a variable that changes what it trusts, named but not shown", async () => {
      const secret = `planted-${crypto.randomUUID()}`;
      const forbidden = [
        "NODE_TLS_REJECT_UNAUTHORIZED",
        "NODE_EXTRA_CA_CERTS",
        "SSLKEYLOGFILE",
        "HTTP_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "VAULT_ADDR",
        "VAULT_TOKEN",
        "VAULT_SKIP_VERIFY",
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_API_KEY",
        "DEBUG",
        "NODE_DEBUG",
      ];
      const { exit, output } = await runService(MAIN, {
        env: {
          ...env,
          ...Object.fromEntries(forbidden.map((name) => [name, secret])),
          // Node itself prints the value of this one when it cannot read it.
          NODE_EXTRA_CA_CERTS: "/nonexistent",
        },
      });
      assert.equal(exit, 78);
      for (const name of forbidden) assert.ok(output.includes(`${name} must not be set`), name);
      assert.ok(!output.includes(secret) && !output.includes("listening"));
      const inspected = await runService(MAIN, { env: { ...env, NODE_OPTIONS: "--no-warnings" } });
      assert.equal(inspected.exit, 78);
    });
  });

  it("exports its spans over OTLP when told where, as a child of the caller's", async () => {
    const received: string[] = [];
    const collector = createServer((request, response) => {
      request.setEncoding("utf8").on("data", (chunk) => received.push(`${request.url} ${chunk}`));
      request.on("end", () => response.end("{}"));
    }).listen(0, "127.0.0.1");
    await once(collector, "listening");
    const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
    const { service, client } = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint });
    const traceparent = newTraceparent();
    const parent = {
      signal: new AbortController().signal,
      deadlineMs: Number.POSITIVE_INFINITY,
      traceparent,
    };
    await client.getSession({ sessionId: "sesn_1" }, { parent });
    service.process.kill("SIGTERM");
    assert.equal(await service.exit, 0);
    const all = received.join("");
    assert.match(all, /^\/v1\/traces /);
    const [, traceId = "", spanId = ""] = traceparent.split("-");
    for (const part of [
      traceId,
      spanId,
      "ganglion.session.v1.SessionService/GetSession",
      "ganglion-session",
    ]) {
      assert.ok(all.includes(part), part);
    }
    collector.close();
  });

  it("prints its settings and its version", async () => {
    const printed = await runService(MAIN, { env, args: ["--print-config", "--log-level=debug"] });
    assert.equal(printed.exit, 0);
    assert.equal(JSON.parse(printed.output).GANGLION_LOG_LEVEL, "debug");
    assert.match((await runService(MAIN, { env, args: ["--version"] })).output, /^\d+\.\d+\.\d+$/);
    assert.match((await runService(MAIN, { env, args: ["--help"] })).output, /GANGLION_TLS_DIR, --tls-dir/);
  });
});
