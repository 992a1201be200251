import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { DEFAULT_IMAGE } from "../../../services/common/config/common-fields.ts";
import { createClient } from "../../../services/common/grpc/create-client.ts";
import { implement, serverStream, unary } from "../../../services/common/grpc/handlers.ts";
import { type RunningServer, startServer } from "../../../services/common/grpc/start-server.ts";
import {
  HealthService,
  HealthCheckResponse_ServingStatus as Status,
} from "../../../services/gen/grpc/health/v1/health.ts";
import { Fixture, watchMessage } from "./fixture.ts";

const BUF = new URL("../../../node_modules/.bin/buf", import.meta.url).pathname;
const SERVICE = "ganglion.session.v1.SessionService";

describe("what a server tells of itself", () => {
  let fixture: Fixture;
  let server: RunningServer;
  before(async () => {
    fixture = await Fixture.create();
    server = await fixture.serve({
      getSession: unary(async () => ({ session: undefined })),
      watchEvents: serverStream(async function* () {
        yield watchMessage(1);
        yield watchMessage(2);
      }),
    });
  });
  after(() => fixture.stop());

  /** buf curl, which knows nothing of our protos, with a certificate of `as`. */
  const curl = async (as: string, args: string[], path = "", more = {}) => {
    const directory = await fixture.ca.directory(as, `${as}-1`, more);
    const tls = ["cacert", "cert", "key"].flatMap((name) => [
      `--${name}`,
      join(directory, name === "cacert" ? "ca.pem" : `${name}.pem`),
    ]);
    const url = `https://${server.address}${path}`;
    return promisify(execFile)(BUF, ["curl", "--protocol", "grpc", ...tls, ...args, url]).then(
      ({ stdout }) => ({ code: 0, text: stdout }),
      (error: { code: number; stderr: string }) => ({ code: error.code, text: error.stderr }),
    );
  };

  it("[M01] reflection lists and describes with all imports, and a call works by it alone", async () => {
    const services = await curl("operator", ["--list-services"]);
    assert.deepEqual(services.text.trim().split("\n").sort(), [SERVICE, "grpc.health.v1.Health"].sort());
    const methods = await curl("operator", ["--list-methods"]);
    assert.match(methods.text, /ganglion\.session\.v1\.SessionService\/WatchEvents/);
    // The request's type comes from its own package, events and timestamps from others.
    const called = await curl("operator", ["-d", '{"session_id":"sesn_1"}'], `/${SERVICE}/GetSession`);
    assert.deepEqual(called, { code: 0, text: "{}\n" });
    const watched = await curl("operator", ["-d", '{"session_id":"sesn_1"}'], `/${SERVICE}/WatchEvents`);
    assert.match(watched.text, /"position":\s*"2"/);
    for (const version of ["grpc-v1", "grpc-v1alpha"]) {
      const one = await curl("operator", ["--reflect-protocol", version, "--list-methods"]);
      assert.equal(one.code, 0, one.text);
    }
  });

  it("[A099] reflection answers operators only, and is off by one setting", async () => {
    for (const as of ["session", "harness", "sandbox", "mcp-proxy", "gateway", "client"]) {
      for (const version of ["grpc-v1", "grpc-v1alpha"]) {
        const refused = await curl(as, ["--reflect-protocol", version, "--list-services"], "", {
          usage: "both",
        });
        assert.notEqual(refused.code, 0, as);
        assert.match(refused.text, /permission.?denied/i, as);
      }
    }
    const silent = await fixture.serve({}, { reflection: false });
    const kept = server;
    server = silent;
    try {
      const off = await curl("operator", ["--list-services"]);
      assert.notEqual(off.code, 0);
      assert.match(off.text, /unimplemented|unknown|does not support/i);
    } finally {
      server = kept;
    }
  });

  it("[A099] channelz is not there and health tells nothing but the status, to any identity", async () => {
    const channelz = await curl(
      "operator",
      ["--schema", new URL("../../../proto", import.meta.url).pathname, "-d", "{}"],
      "/grpc.channelz.v1.Channelz/GetServers",
    );
    assert.notEqual(channelz.code, 0);
    for (const as of ["operator", "harness", "nobody"]) {
      const tls = await fixture.ca.bundle(as, `${as}-1`, { usage: "both" });
      const health = createClient(HealthService, server.address, tls, "session");
      for (const service of ["", SERVICE])
        assert.equal((await health.check({ service })).status, Status.SERVING);
      await assert.rejects(health.check({ service: "no.such.Service" }), { code: "NOT_FOUND" });
      health.close();
    }
  });

  it("a service with a method that does not say who may call it does not start", async () => {
    const open = implement(HealthService, {
      check: unary(async () => ({ status: Status.SERVING })),
      list: unary(async () => ({ statuses: {} })),
      watch: serverStream(async function* () {}),
    });
    const starting = startServer({
      service: "session",
      instance: "session-1",
      listen: "127.0.0.1:0",
      image: DEFAULT_IMAGE,
      tls: await fixture.ca.bundle("session"),
      implementations: [open],
      ownsProcess: false,
    });
    await assert.rejects(starting, /do not say who may call them: \/grpc\.health\.v1\.Health\/Check/);
  });
});
