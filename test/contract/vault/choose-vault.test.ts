import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chooseVault } from "../../../services/cli/up/vault-server.ts";

describe("which vault `up` starts", () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "ganglion-choose-"));
  });

  afterEach(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  const choose = (path: string) =>
    chooseVault({
      dataDir: join(folder, "data"),
      tlsDir: join(folder, "tls"),
      port: 1234,
      path,
      checkout: "/checkout",
      node: "/node",
    });

  function program(name: string): string {
    const bin = join(folder, `bin-${name}`);
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(bin, name), "#!/bin/sh\n");
    chmodSync(join(bin, name), 0o755);
    return bin;
  }

  it("is the development vault where there is no other", () => {
    const server = choose("");
    assert.equal(server.kind, "dev-vault");
    assert.deepEqual(server.command, ["/node", "/checkout/services/dev-vault/main.ts"]);
    assert.equal(server.env.GANGLION_LISTEN, "127.0.0.1:1234");
  });

  it("is a `vault` or `bao` program where there is one, in a server mode that keeps its data", () => {
    for (const kind of ["vault", "bao"] as const) {
      const bin = program(kind);
      const server = choose(bin);
      assert.equal(server.kind, kind);
      assert.equal(server.command[0], join(bin, kind));
      assert.ok(!server.command.includes("-dev"));
      server.prepare(undefined);
      const file = (server.command[2] as string).replace("-config=", "");
      const config = readFileSync(file, "utf8");
      assert.match(config, /storage "raft"/);
      assert.match(config, /address\s+= "127\.0\.0\.1:1234"/);
      assert.match(config, /tls_cert_file/);
      assert.equal(config.includes('audit "file"'), kind === "bao");
      assert.equal(statSync(file).mode & 0o777, 0o600);
      rmSync(join(folder, "data"), { recursive: true });
    }
  });

  it("takes no program from a relative place in PATH, and no folder of that name", () => {
    mkdirSync(join(folder, "bin", "vault"), { recursive: true });
    assert.equal(choose(`.:bin:${join(folder, "bin")}`).kind, "dev-vault");
  });

  it("stays the one that has the credentials, whatever is installed later", () => {
    mkdirSync(join(folder, "data", "dev"), { recursive: true });
    writeFileSync(join(folder, "data", "dev", "seal.json"), "{}");
    assert.equal(choose(program("vault")).kind, "dev-vault");
  });

  it("is refused when the one that has the credentials is gone", () => {
    mkdirSync(join(folder, "data", "bao"), { recursive: true });
    writeFileSync(join(folder, "data", "bao", "vault.db"), "");
    assert.throws(() => choose(program("vault")), /are in a "bao", which is not on this machine/);
    assert.equal(choose(program("bao")).kind, "bao");
  });
});
