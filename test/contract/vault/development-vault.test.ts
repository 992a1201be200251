import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { connect } from "node:tls";
import { configureVault } from "../../../services/cli/up/vault-configuration.ts";
import { newSecret, newVaultId } from "./kit/logins.ts";
import { rawCall } from "./kit/raw-call.ts";
import { initVault, isRealVault, type LocalVault, startVault, writeCertificates } from "./kit/test-vault.ts";

const MAIN = resolve(import.meta.dirname, "../../../services/dev-vault/main.ts");

describe("the development vault by itself", function () {
  this.timeout(30_000);
  let vault: LocalVault;
  let keys: { unsealKey: string; rootToken: string };

  before(async function () {
    if (isRealVault()) return this.skip();
    vault = await startVault();
    keys = await initVault(vault.http);
    await configureVault(vault.http, keys.rootToken);
  });

  after(async () => {
    await vault?.stop();
  });

  const dataDir = () => join(vault.folder, "vault", "dev");
  const files = (folder: string) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));

  it("says loudly what it is", () => {
    assert.match(vault.output(), /THIS IS THE DEVELOPMENT VAULT/);
  });

  it("keeps nothing readable: no secret, no token, no name, no key", async () => {
    const secret = newSecret();
    const vaultId = newVaultId();
    const path = `ganglion/data/vaults/${vaultId}/vcrd_1`;
    const json = { data: { secret } };
    assert.equal(
      (await rawCall(vault.address, "POST", `/v1/${path}`, { token: keys.rootToken, json })).status,
      200,
    );
    const found = files(dataDir());
    assert.ok(found.length > 10);
    const needles = [secret, vaultId, keys.rootToken, "ganglion", "vcrd_1", "capabilities"];
    const forms = needles.flatMap((needle) => [needle, Buffer.from(needle).toString("base64").slice(0, -3)]);
    const key = Buffer.from(keys.unsealKey, "base64");
    for (const file of found) {
      const content = readFileSync(file);
      for (const form of forms) assert.ok(!content.includes(form), `${form.slice(0, 8)} in ${file}`);
      for (const form of [key, keys.unsealKey, key.toString("hex")]) assert.ok(!content.includes(form), file);
      assert.equal(statSync(file).mode & 0o077, 0, file);
      for (const needle of needles) assert.ok(!file.slice(dataDir().length).includes(needle), file);
    }
  });

  it("prints no secret and no token", async () => {
    const secret = newSecret();
    await rawCall(vault.address, "POST", "/v1/ganglion/data/x", {
      token: secret,
      json: { data: { secret } },
    });
    await rawCall(vault.address, "POST", "/v1/ganglion/data/x", {
      token: keys.rootToken,
      text: `{"${secret}`,
    });
    for (const value of [secret, keys.rootToken, keys.unsealKey]) assert.ok(!vault.output().includes(value));
  });

  it("does not open data that somebody changed", async () => {
    await vault.restart("SIGTERM");
    const objects = files(join(dataDir(), "objects"));
    const victim = objects[0] as string;
    const before = readFileSync(victim);
    const changed = Buffer.from(before);
    changed[changed.length - 1] = (changed[changed.length - 1] as number) ^ 1;
    writeFileSync(victim, changed);
    const unseal = () => rawCall(vault.address, "PUT", "/v1/sys/unseal", { json: { key: keys.unsealKey } });
    const refused = await unseal();
    assert.equal(refused.status, 500);
    assert.equal((await rawCall(vault.address, "GET", "/v1/sys/seal-status")).body.sealed, true);
    // Nor data that was moved to another entry's place.
    writeFileSync(victim, readFileSync(objects[1] as string));
    assert.equal((await unseal()).status, 500);
    writeFileSync(victim, before);
    assert.equal((await unseal()).status, 200);
  });

  it("comes back from a write that was cut short", async () => {
    await vault.restart("SIGKILL");
    const some = files(join(dataDir(), "objects"))[0] as string;
    writeFileSync(`${some}.tmp`, "half");
    const unsealed = await rawCall(vault.address, "PUT", "/v1/sys/unseal", { json: { key: keys.unsealKey } });
    assert.equal(unsealed.status, 200);
    assert.ok(!files(dataDir()).some((file) => file.endsWith(".tmp")));
  });

  async function runWith(env: Record<string, string>): Promise<{ code: number | null; output: string }> {
    const child = spawn(process.execPath, [MAIN], { env, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk: Buffer) => {
        output += chunk.toString();
        if (output.includes('"listening"')) child.kill("SIGKILL");
      });
    }
    const [code] = (await once(child, "close")) as [number | null];
    return { code, output };
  }

  it("listens on loopback only: every other address is exit 78", async () => {
    const rest = { GANGLION_TLS_DIR: vault.tlsDir, GANGLION_DATA_DIR: join(vault.folder, "other") };
    for (const listen of ["0.0.0.0:0", "[::]:0", "192.0.2.1:8200", "localhost:0", "127.0.0.1.example:0"]) {
      const { code, output } = await runWith({ ...rest, GANGLION_LISTEN: listen });
      assert.equal(code, 78, `${listen}: ${output}`);
      assert.match(output, /loopback addresses only/);
    }
  });

  it("starts with no setting that it does not know", async () => {
    const rest = { GANGLION_TLS_DIR: vault.tlsDir, GANGLION_DATA_DIR: join(vault.folder, "other") };
    const { code, output } = await runWith({ ...rest, GANGLION_LISTEN: "127.0.0.1:0", GANGLION_OTHER: "1" });
    assert.equal(code, 78);
    assert.match(output, /GANGLION_OTHER/);
    assert.equal((await runWith({ GANGLION_LISTEN: "127.0.0.1:0" })).code, 78);
  });

  it("is made anew over the rest of an initialization that was cut short", async () => {
    const other = await startVault();
    try {
      const objects = join(other.folder, "vault", "dev", "objects");
      mkdirSync(objects);
      writeFileSync(join(objects, "0".repeat(64)), "written with a key that nobody has");
      const { rootToken } = await initVault(other.http);
      assert.equal((await other.http.call("GET", "sys/mounts", { token: rootToken })).status, 200);
    } finally {
      await other.stop();
    }
  });

  it("lives on when clients hang up in the middle of a request", async () => {
    const { hostname, port } = new URL(vault.address.addr);
    const socket = connect({ host: hostname, port: Number(port), ca: vault.address.caPem ?? "" });
    await once(socket, "secureConnect");
    socket.write("POST /v1/sys/unseal HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{");
    socket.destroy();
    await once(socket, "close");
    assert.equal((await rawCall(vault.address, "GET", "/v1/sys/health")).status, 200);
    assert.ok(!vault.output().includes("failed by a bug"), vault.output());
  });

  it("makes a root token for who holds the unseal key, once for each attempt", async () => {
    const put = (path: string, json: unknown) =>
      rawCall(vault.address, "PUT", `/v1/sys/generate-root/${path}`, { json });
    const begun = await put("attempt", {});
    assert.equal(begun.status, 200);
    assert.equal((await put("update", { key: keys.unsealKey, nonce: "wrong" })).status, 400);
    const wrongKey = Buffer.alloc(32, 1).toString("base64");
    assert.equal((await put("update", { key: wrongKey, nonce: begun.body.nonce })).status, 400);
    assert.equal((await put("update", { key: keys.unsealKey, nonce: begun.body.nonce })).status, 400);
    const second = await put("attempt", {});
    const done = await put("update", { key: keys.unsealKey, nonce: second.body.nonce });
    assert.equal(done.status, 200);
    const otp = Buffer.from(second.body.otp);
    const token = Buffer.from(done.body.encoded_token, "base64").map(
      (byte, at) => byte ^ (otp[at] as number),
    );
    const own = await rawCall(vault.address, "GET", "/v1/auth/token/lookup-self", {
      token: Buffer.from(token).toString(),
    });
    assert.deepEqual(own.body.data.policies, ["root"]);
  });

  it("serves a renewed certificate without a restart", async () => {
    const { port, hostname } = new URL(vault.address.addr);
    // Another authority, so that a client that trusts only the new one tells the two apart.
    const ca = await writeCertificates(join(vault.folder, "renewed"));
    for (const name of ["ca.pem", "cert.pem", "key.pem"]) {
      writeFileSync(join(vault.tlsDir, name), readFileSync(join(vault.folder, "renewed", name)));
    }
    const isServed = () =>
      new Promise<boolean>((resolve) => {
        const socket = connect({ host: hostname, port: Number(port), ca }, () => {
          socket.destroy();
          resolve(true);
        });
        socket.on("error", () => resolve(false));
      });
    while (!(await isServed())) await wait(50);
  });
});
