import assert from "node:assert/strict";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { sharedStage } from "../kit/shared-stage.ts";
import type { Stage } from "../kit/stage.ts";

const INSPECTOR_PORT = 9229;
const LISTENING = "0A";

describe("the processes of a mesh", function () {
  this.timeout(60_000);
  let stage: Stage;

  before(async function () {
    this.timeout(240_000);
    stage = await sharedStage();
    await stage.whole();
  });

  const everybody = (): Record<string, number> => ({
    ...stage.mesh.pids(),
    supervisor: stage.mesh.supervisorPid(),
  });

  it("live on after SIGUSR1, without an inspector [A096]", async () => {
    const before = everybody();
    // PostgreSQL means something else by it.
    const nodes = Object.entries(before).filter(([name]) => name !== "postgres");
    assert.ok(nodes.length >= 8);
    for (const [, pid] of nodes) process.kill(pid, "SIGUSR1");
    // Whoever has answered has also taken the signal that came before.
    const doctor = await stage.mesh.cli(["doctor", "--json"]);
    assert.equal(doctor.code, 0, doctor.stdout);
    assert.deepEqual(everybody(), before, "nobody was replaced");
    for (const [name, pid] of nodes) {
      assert.ok(!listeningPorts(pid).includes(INSPECTOR_PORT), `${name} opened its inspector`);
      const log = name === "supervisor" ? readSupervisorLog(stage) : stage.mesh.log(name);
      assert.ok(!log.includes("Debugger listening"), `${name} opened its inspector`);
    }
  });

  it("were never given a secret in their environment or arguments [A079]", () => {
    const { apiKey } = stage.mesh;
    const secrets = [apiKey, stage.model.apiKey, stage.mcp.token];
    for (const [name, pid] of Object.entries(everybody())) {
      for (const file of ["environ", "cmdline"]) {
        const text = readFileSync(`/proc/${pid}/${file}`, "latin1");
        for (const secret of secrets) assert.ok(!text.includes(secret), `${file} of ${name}`);
        assert.doesNotMatch(
          text,
          /VAULT_|ANTHROPIC_|PASSWORD|SECRET|BEGIN [A-Z ]*PRIVATE/i,
          `${file} of ${name}`,
        );
      }
    }
  });
});

function readSupervisorLog(stage: Stage): string {
  return readFileSync(`${stage.mesh.files.logs}/supervisor.log`, "utf8");
}

/** TCP ports on which a process listens. */
function listeningPorts(pid: number): number[] {
  const sockets = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
      } catch {
        // It was closed meanwhile.
        return [];
      }
    }),
  );
  const lines = ["tcp", "tcp6"].flatMap((file) =>
    readFileSync(`/proc/${pid}/net/${file}`, "utf8").split("\n").slice(1),
  );
  return lines.flatMap((line) => {
    const [, local, , state, , , , , , inode] = line.trim().split(/\s+/);
    const isOwn = state === LISTENING && inode !== undefined && sockets.has(inode);
    return isOwn ? [Number.parseInt(local?.split(":")[1] ?? "", 16)] : [];
  });
}
