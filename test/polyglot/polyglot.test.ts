import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { sharedStage } from "../kit/shared-stage.ts";
import type { Stage } from "../kit/stage.ts";
import { type PythonClient, preparePython } from "./prepare-python.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

describe("a client in Python, on stubs that buf generated", function () {
  this.timeout(120_000);
  let stage: Stage;
  let python: PythonClient;

  before(async function () {
    this.timeout(480_000);
    stage = await sharedStage();
    python = preparePython(ROOT);
    await stage.whole();
  });

  const run = async (env: Record<string, string>) => {
    const child = spawn(python.command, ["test/polyglot/client.py"], {
      cwd: ROOT,
      env: { PATH: process.env.PATH ?? "", PYTHONPATH: python.path, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const exit = new Promise<number | null>((resolve) => child.once("close", resolve));
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    return { code: await exit, stdout, stderr };
  };
  const environment = () => {
    const { GANGLION_GRPC_ADDR = "", GANGLION_CA = "", ANTHROPIC_API_KEY = "" } = stage.mesh.env;
    return { GANGLION_GRPC_ADDR, GANGLION_CA, ANTHROPIC_API_KEY };
  };

  it("makes a session, sends a message and watches it to the end [B136]", async () => {
    const { code, stdout, stderr } = await run(environment());
    assert.equal(code, 0, stderr);
    const seen = JSON.parse(stdout) as {
      session_id: string;
      position: number;
      events: { position: number; type: string }[];
      text: string[];
      outputs: string[];
    };
    assert.deepEqual(
      seen.events.map(({ position }) => position),
      seen.events.map((_, index) => index + 1),
    );
    assert.equal(seen.events.at(-1)?.type, "session.status_idle");
    assert.equal(seen.position, seen.events.length);
    const types = seen.events.map(({ type }) => type);
    for (const type of ["user.message", "agent.tool_use", "agent.tool_result", "agent.message"])
      assert.ok(types.includes(type), `${type} is missing in ${types.join(", ")}`);
    assert.match(seen.outputs.join(""), /hello-from-python/);
    assert.match(seen.text.at(-1) ?? "", /hello-from-python/);
    const log = await stage.log(seen.session_id);
    assert.deepEqual(
      log.slice(0, types.length).map(({ type }) => type),
      types,
      "both languages read the same log",
    );
  });

  it("is told by name why it is refused", async () => {
    const { code, stdout, stderr } = await run({ ...environment(), ANTHROPIC_API_KEY: "gk-wrong" });
    assert.notEqual(code, 0);
    assert.equal(stdout, "");
    assert.match(stderr, /StatusCode\.UNAUTHENTICATED/);
  });
});
