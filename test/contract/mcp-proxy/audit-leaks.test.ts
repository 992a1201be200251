import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { newId } from "../../../services/common/ids/new-id.ts";
import { AuditStage } from "./audit-stage.ts";
import { failureOf } from "./proxy-kit.ts";

describe("what stays inside of mcp-proxy", function () {
  this.timeout(120_000);
  let stage: AuditStage;

  before(async () => {
    stage = await AuditStage.start();
  });
  after(() => stage?.stop());
  afterEach(function () {
    stage?.explain(this.currentTest);
  });

  it("spans, metrics and log lines carry no token, header, input or address with a query [A149]", async () => {
    const exported: string[] = [];
    const collector = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => {
        exported.push(Buffer.concat(parts).toString("latin1"));
        response.setHeader("content-type", "application/json").end("{}");
      });
    });
    collector.listen(0, "127.0.0.1");
    await once(collector, "listening");
    const traced = await stage.kit.startProxy({
      GANGLION_INSTANCE: "mcp-proxy-3",
      GANGLION_ADMIN_LISTEN: "127.0.0.1:0",
      GANGLION_LOG_LEVEL: "debug",
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
    });
    const session = await stage.bound();
    const canary = `cnry_${randomUUID()}`;
    const { addr } = traced.listening;
    const key = newId("sevt");
    await stage.call(session, "echo", { message: canary }, key, addr);
    await failureOf(stage.call({ token: `${canary}-token` }, "echo", { message: canary }, key, addr));
    const metrics = await (await fetch(`http://${traced.listening.admin_addr}/metrics`)).text();
    traced.process.kill("SIGTERM");
    assert.equal(await traced.exit, 0);
    collector.close();
    const everything = { spans: exported.join("\n"), metrics, log: traced.output() };
    assert.match(everything.spans, /CallTool/);
    assert.match(metrics, /ganglion_mcp_proxy_requests_total/);
    for (const [where, text] of Object.entries(everything)) {
      for (const secret of [canary, session.token, stage.upstream.token]) {
        for (const form of [
          secret,
          Buffer.from(secret).toString("base64"),
          Buffer.from(secret).toString("hex"),
        ])
          assert.equal(text.includes(form), false, where);
      }
    }
    // The way from the log's event to the audit log is in both.
    assert.match(traced.output(), /"proxy_request_id":"req_/);
  });

  it("an error of the database shows neither statement nor values, to nobody [A139]", async () => {
    const session = await stage.bound();
    await stage.list(session);
    const canary = `canary-${randomUUID()}`;
    const call = (key: string) => stage.call(session, "echo", { message: canary }, key);
    const constraint = "CHECK (call_key NOT LIKE '%canary%')";
    await stage.kit.sql(
      "ganglion_owner",
      `ALTER TABLE proxy.calls ADD CONSTRAINT no_canary ${constraint} NOT VALID`,
    );
    try {
      const error = await failureOf(call(`sevt_${canary.replaceAll("-", "_")}`));
      assert.equal(error.reason, "AUDIT_UNAVAILABLE");
      assert.equal(JSON.stringify([error.message, error.metadata]).includes("canary"), false);
    } finally {
      await stage.kit.sql("ganglion_owner", "ALTER TABLE proxy.calls DROP CONSTRAINT no_canary");
    }
    const output = stage.kit.service.output();
    assert.doesNotMatch(output, /canary|INSERT INTO|SELECT |UPDATE proxy|violates/);
    await call(newId("sevt"));
  });
});
