import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const PROCESS = fileURLToPath(new URL("../../fakes/logging-process.ts", import.meta.url));

async function linesOf(how: string): Promise<string[]> {
  const child = spawn(process.execPath, [PROCESS, how], { stdio: ["ignore", "pipe", "ignore"] });
  const closed = once(child, "close");
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) lines.push(line);
  await closed;
  return lines.map((line) => JSON.parse(line).msg as string);
}

describe("log lines, which go out together", () => {
  for (const how of ["exits", "throws"]) {
    it(`are all out when their process ${how}`, async () => {
      assert.deepEqual(await linesOf(how), ["last"]);
    });
  }

  it("are out up to a warning when their process is killed right after it", async () => {
    assert.deepEqual(await linesOf("is killed"), ["before", "last"]);
  });

  it("are all there and in order when there are many", async () => {
    const lines = await linesOf("says a lot");
    assert.equal(lines.length, 3_001);
    assert.equal(lines.at(-1), "last");
  });

  it("are read while their process goes on", async () => {
    const child = spawn(process.execPath, [PROCESS, "stays"], { stdio: ["pipe", "pipe", "ignore"] });
    const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
    assert.equal(JSON.parse(line).msg, "last");
    assert.equal(child.exitCode, null);
    child.stdin.end();
    await once(child, "close");
  });

  it("cost their process nothing when nobody reads them any more", async () => {
    const child = spawn(process.execPath, [PROCESS, "says a lot"], { stdio: ["ignore", "pipe", "ignore"] });
    child.stdout.destroy();
    const [code] = await once(child, "exit");
    assert.equal(code, 0);
  });
});
