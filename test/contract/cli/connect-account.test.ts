import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectAccount } from "../../../services/cli/client/connect-account.ts";
import type { Mesh } from "../../../services/cli/client/connect-mesh.ts";
import { isPlainUrl, openBrowser } from "../../../services/cli/client/open-browser.ts";
import { startRedirectListener } from "../../../services/cli/client/redirect-listener.ts";
import type { Invocation } from "../../../services/cli/commands/command.ts";
import { startOauthServer, type TestOauthServer } from "../../kit/oauth-server.ts";
import { walkThrough } from "../../kit/walk-through.ts";
import { bindVault, GREETING, storedAt, textOf, whoami } from "../mcp-proxy/oauth-kit.ts";
import { ProxyKit } from "../mcp-proxy/proxy-kit.ts";

describe("ganglion vault connect", function () {
  this.timeout(120_000);
  let kit: ProxyKit;
  let server: TestOauthServer;

  before(async () => {
    server = await startOauthServer();
    kit = await ProxyKit.start({ GANGLION_PROXY_ALLOW_HTTP_HOSTS: new URL(server.issuer).host });
  });

  after(async () => {
    await kit?.stop();
    await server?.stop();
  });

  /** Runs it with a browser that does what a test wants with the address that is shown. */
  const connect = async (browser: (url: string) => Promise<unknown>, options: Invocation["options"] = {}) => {
    const lines: string[] = [];
    const walking: Promise<unknown>[] = [];
    const terminal = {
      line: (text: string) => {
        lines.push(text);
        if (text.startsWith("http")) walking.push(browser(text));
      },
      object: () => {},
    };
    const mesh = { vaults: await kit.vaults() } as unknown as Mesh;
    const invocation = { options, positionals: [], stateDir: "", terminal } as unknown as Invocation;
    const made = await connectAccount(mesh, server.url, invocation);
    await Promise.all(walking);
    return { made, lines };
  };
  const follow = async (url: string) => {
    const redirectUri = new URL(url).searchParams.get("redirect_uri") ?? "";
    const answer = await walkThrough(url, redirectUri);
    return get(`${redirectUri}?${answer}`);
  };

  it("takes a person from the address of a server to a credential; no token comes by here", async () => {
    const vaultId = await kit.makeVault();
    let page = "";
    const { made, lines } = await connect(
      async (url) => {
        page = (await follow(url)).text;
      },
      { vault: vaultId, name: "calendar" },
    );
    assert.equal(made.displayName, "calendar");
    assert.match(page, /You are connected/);
    const { document } = await storedAt(kit, made);
    for (const secret of [document.secret, document.refresh_token])
      assert.ok(!lines.join().includes(secret ?? "?"));
    assert.equal(textOf(await whoami(kit, await bindVault(kit, vaultId, server.url))), GREETING);
  });

  it("turns away whoever is not the browser that comes back: Host, Origin, method, path, state [A040]", async () => {
    const listener = await startRedirectListener(0);
    try {
      const own = new URL(listener.redirectUri);
      const answering = listener.answer("the-state", 10_000);
      const good = `${listener.redirectUri}?state=the-state&code=c`;
      assert.equal((await get(good, { host: "evil.test" })).status, 421);
      assert.equal((await get(good, { host: `localhost:${own.port}` })).status, 421);
      assert.equal((await get(good, { origin: "https://evil.test" })).status, 403);
      assert.equal((await get(good, {}, "POST")).status, 405);
      assert.equal((await get(`${own.origin}/?state=the-state&code=c`)).status, 404);
      assert.equal((await get(`${listener.redirectUri}?state=other&code=c`)).status, 403);
      assert.equal((await get(`${listener.redirectUri}?code=c`)).status, 403);
      assert.equal((await get(`${good}&state=the-state`)).status, 403);
      assert.equal((await get(`${good}&iss=https://i.test`)).status, 200);
      assert.deepEqual(await answering, { code: "c", iss: "https://i.test" });
      // There is no second answer.
      assert.equal((await get(good)).status, 404);
    } finally {
      await listener.close();
    }
  });

  it("says why when the server did not agree, in the server's word only", async () => {
    const vaultId = await kit.makeVault();
    const refuse = async (url: string) => {
      const { searchParams } = new URL(url);
      const back = new URL(searchParams.get("redirect_uri") ?? "");
      back.searchParams.set("state", searchParams.get("state") ?? "");
      back.searchParams.set("error", "access_denied");
      back.searchParams.set("error_description", "\u001b[31mred");
      await get(back.href);
    };
    await assert.rejects(connect(refuse, { vault: vaultId }), /did not agree: access_denied$/);
  });

  it("opens a browser with --open only, as one argument of a program, never through a shell [A050]", async () => {
    const folder = mkdtempSync(join(tmpdir(), "ganglion-open-"));
    const opener = join(folder, "opener");
    const seen = join(folder, "seen");
    const marker = join(folder, "marker");
    writeFileSync(opener, `#!/bin/sh\nprintf '%s|' "$@" > ${seen}.new && mv ${seen}.new ${seen}\n`);
    chmodSync(opener, 0o700);
    try {
      const url = "https://auth.test/a?b=c&d=e;f".replace(";f", "");
      assert.equal(await openBrowser(url, opener), true);
      while (!existsSync(seen)) await new Promise((resolve) => setImmediate(resolve));
      assert.equal(readFileSync(seen, "utf8"), `${url}|`);
      for (const bad of [
        `http://x$(touch ${marker})`,
        `http://x/\`touch ${marker}\``,
        `http://x/';touch ${marker};'`,
        "--version",
        "file:///etc/passwd",
      ]) {
        assert.equal(isPlainUrl(bad), false);
        assert.equal(await openBrowser(bad, opener), false);
      }
      assert.ok(!existsSync(marker));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

/** A GET with headers that fetch would not send. */
function get(url: string, headers: Record<string, string> = {}, method = "GET") {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
  const asking = request(url, { method, headers }, (answer) => {
    let text = "";
    answer.on("data", (chunk) => {
      text += chunk;
    });
    answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text }));
  });
  asking.on("error", reject);
  asking.end();
  return promise;
}
