import assert from "node:assert/strict";
import { type BoundQuestion, beyondBound } from "../../../services/mcp-proxy/domain/bound.ts";
import { parseDestination } from "../../../services/mcp-proxy/domain/canonical-url.ts";
import { reasonOf } from "../../../services/mcp-proxy/domain/proxy-error.ts";

const destination = parseDestination("https://git.good.test/acme/app");
assert.ok(destination);

describe("what goes beyond the operator's policy", () => {
  const git = (refs: string[]): BoundQuestion => ({ door: "git", destination, operation: "push", refs });
  for (const [what, question, reason] of [
    ["a model", { door: "models", model: "m" }, "MODEL_NOT_ALLOWED"],
    ["an MCP server", { door: "mcp", destination }, "DEST_NOT_ALLOWED"],
    ["a host on the way out", { door: "egress", destination }, "DEST_NOT_ALLOWED"],
    ["an authorization server", { door: "oauth", destination }, "DEST_NOT_ALLOWED"],
    ["a repository", git([]), "REPO_NOT_ALLOWED"],
    ["refs of a push", git(["refs/heads/main"]), "REF_NOT_ALLOWED"],
  ] as [string, BoundQuestion, string][]) {
    it(`is denied by what it is: ${what}`, () => assert.equal(reasonOf(beyondBound(question)), reason));
  }
});
