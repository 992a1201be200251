import assert from "node:assert/strict";
import { commonFields } from "../../../services/common/config/common-fields.ts";
import { flag, hostPorts, text, url } from "../../../services/common/config/fields.ts";
import { readConfig } from "../../../services/common/config/load-config.ts";
import { isId, newId } from "../../../services/common/ids/new-id.ts";
import { createLogger, describeError } from "../../../services/common/log/create-logger.ts";
import {
  formatTraceparent,
  newTraceparent,
  parseTraceparent,
} from "../../../services/common/telemetry/trace-context.ts";
import { parseSpiffeUri, spiffeIdOf, spiffeUri } from "../../../services/common/tls/spiffe-id.ts";

describe("newId", () => {
  it("gives ids that sort in the order they were made, without a repeat", () => {
    const ids = Array.from({ length: 20_000 }, () => newId("sevt"));
    assert.deepEqual([...ids].sort(), ids);
    assert.equal(new Set(ids).size, ids.length);
    assert.match(ids[0] ?? "", /^sevt_[0-9a-hjkmnp-tv-z]{26}$/);
    assert.ok(isId("sevt", ids[0] ?? "") && !isId("sesn", ids[0] ?? ""));
  });
});

describe("a SPIFFE id", () => {
  it("is taken from exactly one URI name of our trust domain", () => {
    const uri = spiffeUri("session", "session-1");
    const good = `URI:${uri}, DNS:localhost, IP Address:127.0.0.1`;
    assert.deepEqual(spiffeIdOf({ subjectaltname: good }), {
      uri,
      service: "session",
      instance: "session-1",
    });
    for (const bad of [
      "",
      "DNS:localhost",
      `${good}, URI:${uri}`,
      `${good}, URI:spiffe://ganglion.local/operator/x`,
      "URI:spiffe://elsewhere/session/session-1",
      "URI:spiffe://ganglion.local/session",
      "URI:spiffe://ganglion.local/session/a/b",
      "URI:spiffe://ganglion.local//a",
      "URI:spiffe://ganglion.local/session/..%2foperator",
      'DNS:"x, URI:spiffe://ganglion.local/operator/x"',
      `URI:"${uri}"`,
    ]) {
      assert.equal(spiffeIdOf({ subjectaltname: bad }), undefined, bad);
    }
    assert.equal(parseSpiffeUri(`${uri}\n`), undefined);
    assert.throws(() => spiffeUri("session", "a/b"));
  });
});

describe("trace context", () => {
  it("is read from the exact W3C form only", () => {
    const made = newTraceparent();
    const parsed = parseTraceparent(made);
    assert.ok(parsed);
    assert.equal(formatTraceparent(parsed), made);
    for (const bad of [
      undefined,
      "",
      "x",
      `${made}, ${made}`,
      made.toUpperCase().replace("00-", "01-"),
      `00-${"0".repeat(32)}-${"1".repeat(16)}-01`,
    ]) {
      assert.equal(parseTraceparent(bad), undefined);
    }
  });
});

describe("readConfig", () => {
  const fields = {
    GANGLION_A: text("a", "x"),
    GANGLION_B: flag("b", false),
    GANGLION_P: { ...text("p", ""), secret: true },
  };

  it("takes flags over the environment over defaults", () => {
    const result = readConfig(fields, { env: { GANGLION_A: "env", GANGLION_B: "true" }, argv: ["--a=flag"] });
    assert.ok(result.ok);
    assert.equal(result.config.GANGLION_A, "flag");
    assert.equal(result.config.GANGLION_B, true);
  });

  it("shows no secret and takes none from an argument", () => {
    const result = readConfig(fields, { env: { GANGLION_P: "planted" }, argv: [] });
    assert.ok(result.ok && !JSON.stringify(result.printed).includes("planted"));
    const argument = readConfig(fields, { env: {}, argv: ["--p", "planted"] });
    assert.ok(!argument.ok && argument.problems[0]?.includes("secret"));
  });

  it("lists everything that is wrong at once", () => {
    const result = readConfig(
      { ...fields, GANGLION_U: url("u"), GANGLION_L: hostPorts("l") },
      {
        env: { GANGLION_B: "yes", GANGLION_U: "http://u:p@h", GANGLION_L: "h:1,h", GANGLION_Z: "" },
        argv: ["--nope"],
        execArgv: ["--inspect"],
      },
    );
    assert.ok(!result.ok);
    assert.equal(result.problems.length, 6);
  });

  it("knows the common settings by the names of the design", () => {
    for (const name of ["INSTANCE", "LISTEN", "ADMIN_LISTEN", "TLS_DIR", "IMAGE", "LOG_LEVEL"]) {
      assert.ok(Object.hasOwn(commonFields, `GANGLION_${name}`));
    }
  });
});

describe("the log", () => {
  it("keeps fields that hold credentials or payloads out, at every depth it is likely to meet", () => {
    const lines: string[] = [];
    const log = createLogger({ service: "s", instance: "s-1" }, "debug", {
      write: (line) => void lines.push(line),
    });
    const secret = "planted-secret";
    log.info(
      { authorization: secret, a: { password: secret, b: { token: secret } }, headers: { x: secret } },
      "x",
    );
    log.error({ err: Object.assign(new Error("m"), { config: { headers: secret }, response: secret }) }, "x");
    assert.ok(!lines.join("").includes(secret));
    assert.equal(JSON.parse(lines[1] ?? "{}").err.message, "m");
  });

  it("tells an error's causes and none of what libraries hang on it", () => {
    const told = describeError(
      Object.assign(new Error("outer", { cause: new Error("inner") }), { code: "E", request: 1 }),
    );
    assert.equal((told.cause as { message: string }).message, "inner");
    assert.equal(told.code, "E");
    assert.ok(!("request" in told));
  });
});
