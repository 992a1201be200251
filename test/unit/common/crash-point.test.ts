import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { crashPoint, setCrashHook } from "../../../services/common/crash/crash-point.ts";

const SERVICES = new URL("../../../services/", import.meta.url);
const HOME = "common/crash/crash-point.ts";

describe("crash points", () => {
  afterEach(() => setCrashHook(undefined));

  it("do nothing without a hook", () => {
    assert.equal(crashPoint("send", "a", "before"), undefined);
  });

  it("tell the hook where they are", () => {
    const seen: unknown[] = [];
    setCrashHook((...point) => seen.push(point));
    crashPoint("pg", "append_one", "before");
    crashPoint("model.end");
    assert.deepEqual(seen, [
      ["pg", "append_one", "before"],
      ["model.end", undefined, undefined],
    ]);
  });

  it("have no hook in anything that is shipped", () => {
    const files = readdirSync(SERVICES, { recursive: true, encoding: "utf8" });
    const sources = files.filter((name) => /\.[cm]?[jt]s$/.test(name) && name !== HOME);
    assert.ok(sources.length > 300, "the services were read");
    const users = sources.filter((name) =>
      /setCrashHook/.test(readFileSync(new URL(name, SERVICES), "utf8")),
    );
    assert.deepEqual(users, []);
  });
});
