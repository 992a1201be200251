import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { choosePorts, PortTakenError } from "../../../services/cli/up/choose-ports.ts";
import { askSupervisor, serveControl } from "../../../services/cli/up/control-socket.ts";
import { ManagedProcess } from "../../../services/cli/up/managed-process.ts";
import { MeshCertificates } from "../../../services/cli/up/mesh-certificates.ts";
import { endProcess, isRunning, recordOf } from "../../../services/cli/up/process-record.ts";

describe("parts of the supervisor", () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "ganglion-supervisor-"));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const sleeper = async (): Promise<ChildProcess> => {
    const child = spawn("sleep", ["60"], { detached: true, stdio: "ignore" });
    await once(child, "spawn");
    return child;
  };

  it("never ends a process that only has the number of the one it knew", async () => {
    const child = await sleeper();
    const record = recordOf(child.pid as number);
    assert.ok(record);
    const other = { ...record, startTime: "1" };
    assert.ok(!isRunning(other));
    await endProcess(other, 0);
    assert.ok(isRunning(record));
    await endProcess({ ...record, bootId: "another boot" }, 0);
    assert.ok(isRunning(record));
    await endProcess(record, 1000);
    assert.ok(!isRunning(record));
  });

  it("kills what does not want to end", async () => {
    const child = spawn("sh", ["-c", "trap '' TERM; echo on; while :; do sleep 1; done"], { detached: true });
    await once(child.stdout, "data");
    const record = recordOf(child.pid as number);
    assert.ok(record);
    await endProcess(record, 100);
    assert.ok(!isRunning(record));
  });

  it("keeps ports from one start to the next, takes others for those that are gone, and says which it must have", async () => {
    const first = await choosePorts(["a", "b"], {}, { rest: 0 });
    assert.equal(new Set(Object.values(first)).size, 3);
    assert.deepEqual(await choosePorts(["a", "b"], first, { rest: 0 }), first);
    const taken = createServer().listen(first.a, "127.0.0.1");
    await once(taken, "listening");
    const second = await choosePorts(["a", "b"], first, { rest: 0 });
    assert.notEqual(second.a, first.a);
    assert.equal(second.b, first.b);
    await assert.rejects(choosePorts([], {}, { rest: first.a as number }), PortTakenError);
    taken.close();
  });

  it("gives certificates with one identity, and a new one in one step when it is time", async () => {
    const certificates = await MeshCertificates.open(folder);
    const holder = { name: "session-1", service: "session", instance: "session-1", cn: "ganglion_session" };
    assert.equal(await certificates.ensure(holder), true);
    assert.equal(await certificates.ensure(holder), false, "a fresh one is good enough");
    const path = certificates.directory("session-1");
    const read = () => new X509Certificate(readFileSync(join(path, "cert.pem")));
    const before = read();
    assert.match(before.subjectAltName ?? "", /URI:spiffe:\/\/ganglion\.local\/session\/session-1/);
    assert.equal(before.subject, "CN=ganglion_session");
    assert.equal(statSync(join(path, "key.pem")).mode & 0o077, 0);
    assert.equal(
      await certificates.ensure({ ...holder, cn: "other" }),
      true,
      "another name is another certificate",
    );
    assert.notEqual(read().serialNumber, before.serialNumber);
    const again = await MeshCertificates.open(folder);
    assert.equal(again.caPem, certificates.caPem, "the authority stays");
  });

  it("starts a process again when it dies, with a new login each time", async () => {
    let logins = 0;
    const managed = new ManagedProcess({
      name: "part",
      command: ["sh", "-c", "cat <&3; exec sleep 60"],
      env: { PATH: "/usr/bin:/bin" },
      cwd: folder,
      logFile: join(folder, "part.log"),
      bootstrap: async () => `login ${++logins}\n`,
      isReady: async () => true,
    });
    await managed.start(5000);
    const first = managed.record?.pid as number;
    process.kill(first, "SIGKILL");
    while (managed.record === undefined || managed.record.pid === first) await once(managed, "change");
    await managed.stop(1000);
    assert.equal(managed.state, "stopped");
    assert.equal(logins, 2);
    assert.equal(statSync(join(folder, "part.log")).mode & 0o077, 0);
  });

  it("gives up on a process that its configuration keeps from starting, and says why", async () => {
    const managed = new ManagedProcess({
      name: "part",
      command: ["sh", "-c", "echo the reason; exit 78"],
      env: { PATH: "/usr/bin:/bin" },
      cwd: folder,
      logFile: join(folder, "wrong.log"),
      isReady: async () => false,
    });
    await assert.rejects(managed.start(5000), /wrong configuration[\s\S]*the reason/);
    await managed.stop(0);
  });

  it("answers on a socket however deep its folder lies, to its own user only", async () => {
    const deep = join(folder, "x".repeat(120));
    const { mkdirSync } = await import("node:fs");
    mkdirSync(deep);
    const path = join(deep, "supervisor.sock");
    const close = await serveControl(path, async (request, say) => say({ asked: request.ask }));
    assert.equal(statSync(path).mode & 0o077, 0);
    const lines: unknown[] = [];
    assert.equal(await askSupervisor(path, { ask: "status" }, (line) => lines.push(line)), true);
    assert.deepEqual(lines, [{ asked: "status" }]);
    close();
    assert.equal(await askSupervisor(path, { ask: "status" }), false);
  });
});
