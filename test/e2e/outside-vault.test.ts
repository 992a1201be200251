import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bootstrapExternal } from "../../services/cli/up/vault-bootstrap.ts";
import { VaultHttp } from "../../services/cli/up/vault-http.ts";
import { TestCa } from "../kit/ca.ts";
import { TestMesh } from "../kit/mesh.ts";
import { type RunningService, startService } from "../kit/start-service.ts";

const MAIN = new URL("../../services/dev-vault/main.ts", import.meta.url);

describe("a vault that VAULT_ADDR names", function () {
  this.timeout(180_000);
  let ca: TestCa;
  let vault: RunningService;
  let http: VaultHttp;
  let token: string;
  let folder: string;
  let shell: Record<string, string>;

  before(async () => {
    ca = await TestCa.create();
    folder = mkdtempSync(join(tmpdir(), "ganglion-outside-vault-"));
    vault = await startService(MAIN, {
      env: {
        GANGLION_LISTEN: "127.0.0.1:0",
        GANGLION_TLS_DIR: await ca.directory("vault", "vault"),
        GANGLION_DATA_DIR: folder,
      },
    });
    const addr = `https://${vault.listening.addr}`;
    const caPem = ca.authority.certPem;
    http = new VaultHttp({ addr, caPem });
    const made = (await http.call("PUT", "sys/init", { body: { secret_shares: 1, secret_threshold: 1 } }))
      .body;
    await http.call("PUT", "sys/unseal", { body: { key: (made.keys_base64 as string[])[0] } });
    token = made.root_token as string;
    await bootstrapExternal({ addr, caPem, token });
    const caFile = join(ca.root, "vault-ca.pem");
    writeFileSync(caFile, caPem);
    shell = { VAULT_ADDR: addr, VAULT_CACERT: caFile };
  });
  after(async () => {
    await http?.close();
    await vault?.stop();
    ca?.remove();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  const newLogin = async (): Promise<Record<string, string>> => {
    const role = "auth/approle/role/ganglion-proxy";
    const { data } = (await http.call("GET", `${role}/role-id`, { token })).body;
    const made = (await http.call("POST", `${role}/secret-id`, { token, body: {} })).body;
    return {
      VAULT_ROLE_ID: (data as { role_id: string }).role_id,
      VAULT_SECRET_ID: (made.data as { secret_id: string }).secret_id,
    };
  };

  it("is set up and used instead of the embedded one, and mcp-proxy alone hears of it", async () => {
    const mesh = await TestMesh.start({ env: { ...shell, VAULT_TOKEN: token } });
    try {
      assert.ok(!("vault" in mesh.pids()), "no vault of our own runs");
      const { code, stdout, stderr } = await mesh.cli(["run", "Run: echo hello"]);
      assert.equal(code, 0, `${stdout}\n${stderr}`);
      const old = mesh.kill("mcp-proxy-1");
      await mesh.ready("mcp-proxy-1", old);
      assert.equal(
        (await mesh.cli(["run", "Run: echo again"])).code,
        0,
        "a new login was made for the new process",
      );
    } finally {
      await mesh.stop();
    }
  });

  it("is refused with a secret id that only the first start could use, and the reason is said", async () => {
    const start = TestMesh.start({ env: { ...shell, ...(await newLogin()) } });
    await assert.rejects(start, /VAULT_SECRET_ID can be used once only/);
  });

  it("is refused without a login, and what is missing is said", async () => {
    await assert.rejects(TestMesh.start({ env: shell }), /VAULT_ROLE_ID and VAULT_SECRET_ID, or VAULT_TOKEN/);
  });
});
