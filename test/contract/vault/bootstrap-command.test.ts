import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { wrapSecretId } from "../../../services/cli/up/vault-bootstrap.ts";
import { runCli } from "../../kit/mesh.ts";
import { createSessionToken, loginAsProxy } from "./kit/logins.ts";
import { rawCall } from "./kit/raw-call.ts";
import { initVault, isRealVault, type LocalVault, SLOW_MS, startVault } from "./kit/test-vault.ts";

const MAIN = new URL("../../../services/cli/main.ts", import.meta.url).pathname;

describe("ganglion vault bootstrap, at an empty Vault", function () {
  this.timeout(SLOW_MS);
  let vault: LocalVault;
  let token: string;
  let target: string[];

  before(async () => {
    vault = await startVault();
    token = (await initVault(vault.http)).rootToken;
    const caFile = join(vault.folder, "ca.pem");
    writeFileSync(caFile, vault.address.caPem ?? "");
    target = ["vault", "bootstrap", "--vault-addr", vault.address.addr, "--ca-file", caFile, "--json"];
  });
  after(() => vault?.stop());

  it("makes all that mcp-proxy and the supervisor need, with a token from standard input", async () => {
    const tokenFile = join(vault.folder, "supervisor-token");
    const args = [...target, "--supervisor-token-file", tokenFile];
    const { code, stdout, stderr } = await runCli(args, { stdin: `${token}\n` });
    assert.equal(code, 0, stderr);
    assert.ok(!`${stdout}${stderr}`.includes(token));
    const said = JSON.parse(stdout) as { role_id: string; warnings: string[] };
    // A real server has one from its configuration file.
    const warning = isRealVault() ? /^$/ : /no audit device is on/;
    assert.match(said.warnings.join(), warning);
    assert.match(stderr, warning);
    assert.equal(statSync(tokenFile).mode & 0o777, 0o600);
    const supervisorToken = readFileSync(tokenFile, "utf8").trim();
    assert.ok(!`${stdout}${stderr}`.includes(supervisorToken));
    const login = await wrapSecretId(vault.http, supervisorToken);
    assert.equal(login.role_id, said.role_id);
    // It works from end to end: the proxy writes, a session reads.
    const shared = { ...vault, rootToken: token, supervisorToken };
    const proxy = (await loginAsProxy(shared)).client_token;
    const path = "/v1/ganglion/data/vaults/vlt_a/vcrd_a";
    const json = { data: { secret: "s3cret-of-a-test" } };
    assert.equal((await rawCall(vault.address, "POST", path, { token: proxy, json })).status, 200);
    const session = (await createSessionToken(vault.http, proxy, "vlt_a")).client_token;
    assert.equal((await rawCall(vault.address, "GET", path, { token: session })).status, 200);
  });

  it("changes nothing the second time, with a token from a descriptor, which stays as it is", async () => {
    const child = spawn(process.execPath, [MAIN, ...target, "--token-fd", "3"], {
      env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "" },
      stdio: ["ignore", "pipe", "pipe", "pipe"],
    });
    (child.stdio[3] as Writable).end(token);
    const exited = once(child, "exit");
    const [stdout, stderr] = await Promise.all([
      text(child.stdout as Readable),
      text(child.stderr as Readable),
    ]);
    assert.deepEqual(await exited, [0, null], stderr);
    assert.match((JSON.parse(stdout) as { role_id: string }).role_id, /^[0-9a-f-]{36}$/);
    const own = await rawCall(vault.address, "GET", "/v1/auth/token/lookup-self", { token });
    assert.equal(own.status, 200);
    const read = await rawCall(vault.address, "GET", "/v1/ganglion/data/vaults/vlt_a/vcrd_a", { token });
    assert.equal(read.body.data.data.secret, "s3cret-of-a-test");
  });

  it("says what is wrong and never with which token", async () => {
    const wrong = "hvs.not-a-token-of-this-vault";
    const refused = await runCli(target, { stdin: wrong });
    assert.equal(refused.code, 69);
    assert.ok(!`${refused.stdout}${refused.stderr}`.includes(wrong));
    assert.equal((await runCli(target, { stdin: "" })).code, 65);
    assert.equal((await runCli([...target, "--token-fd", "1"], { stdin: token })).code, 64);
    assert.equal((await runCli(["vault", "bootstrap"], { stdin: token })).code, 64);
    const plain = ["vault", "bootstrap", "--vault-addr", "http://127.0.0.1:1"];
    assert.equal((await runCli(plain, { stdin: token })).code, 64);
  });
});
