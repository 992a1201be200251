import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";

const SERVICES = new URL("../../../services/", import.meta.url);
/** Who may know where Vault is: its one user, the development vault itself, and what sets it up and starts it. */
const MAY_KNOW =
  /^(mcp-proxy\/|dev-vault\/|cli\/up\/|cli\/client\/bootstrap-vault\.ts$|cli\/commands\/up\.ts$)/;
/** Words that only somebody writes who dials Vault or logs in to it. */
const KNOWS = /VAULT_ADDR|VAULT_TOKEN|X-Vault-Token|x-vault-token|node-vault|role_id|secret_id/;

const sources = readdirSync(SERVICES, { recursive: true, encoding: "utf8" }).filter(
  (path) => path.endsWith(".ts") && !path.startsWith("gen/"),
);

describe("addresses of Vault", () => {
  it("are known to mcp-proxy and to what sets Vault up, and to nobody else [A016, L5]", () => {
    const strangers = sources.filter(
      (path) => !MAY_KNOW.test(path) && KNOWS.test(code(readFileSync(new URL(path, SERVICES), "utf8"))),
    );
    // The bootstrap document's shape is a library's, read by whoever is given one; the logger knows what to hide.
    assert.deepEqual(strangers.sort(), ["common/config/read-bootstrap.ts", "common/log/create-logger.ts"]);
    const readers = sources.filter((path) =>
      /read-bootstrap/.test(readFileSync(new URL(path, SERVICES), "utf8")),
    );
    assert.deepEqual(readers.sort(), ["mcp-proxy/main.ts", "session/main.ts"]);
  });

  it("node-vault is imported by one file", () => {
    const users = sources.filter((path) =>
      /from "node-vault"/.test(readFileSync(new URL(path, SERVICES), "utf8")),
    );
    assert.equal(users.length, 1);
    assert.match(users[0] ?? "", /^mcp-proxy\/vault\//);
  });
});

/** Without comments: what is said about Vault is no knowledge of it. */
function code(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
}
