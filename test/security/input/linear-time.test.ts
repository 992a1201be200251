import assert from "node:assert/strict";
import { visible } from "../../../services/cli/terminal/visible-text.ts";
import { PolicyInvalid, readPolicy } from "../../../services/common/policy/read-policy.ts";
import { mcpModelName } from "../../../services/harness/domain/mcp-tool-names.ts";
import { sanitizeSchema } from "../../../services/harness/domain/sanitize-schema.ts";
import { parseDestination } from "../../../services/mcp-proxy/domain/canonical-url.ts";
import { isAllowedHost } from "../../../services/mcp-proxy/domain/credential-rules.ts";
import { isHostListed, repositoryUrl } from "../../../services/mcp-proxy/domain/hand-rules.ts";
import { judgeBetas } from "../../../services/mcp-proxy/domain/judge-model-request.ts";
import { recordText } from "../../../services/mcp-proxy/domain/new-record.ts";
import { createRedactor } from "../../../services/mcp-proxy/domain/redactor.ts";
import { readClientHello } from "../../../services/mcp-proxy/egress/client-hello.ts";
import { readGitTarget } from "../../../services/mcp-proxy/egress/git/read-git-target.ts";
import { structuredText } from "../../../services/mcp-proxy/upstream/structured-text.ts";

/** Texts that make a pattern which can match in many ways try them all. */
const SHAPES: readonly [name: string, make: (length: number) => string][] = [
  ["one letter", (n) => `${"a".repeat(n)}!`],
  ["labels", (n) => `${"a.".repeat(n / 2)}!`],
  ["hyphens", (n) => `${"a-".repeat(n / 2)}_`],
  ["slashes", (n) => `https://h.test/${"/a".repeat(n / 2)}\u0000`],
  ["braces", (n) => `{${"{a".repeat(n / 2)}`],
  ["percent", (n) => "%2".repeat(n / 2)],
  ["spaces", (n) => `${" ".repeat(n)}x`],
];

/** The beginning of a greeting, each byte in a record of its own. */
const inRecords = (text: string): Buffer => {
  const message = Buffer.from(`\u0001\u0000\u00ea\u0060${text}`, "latin1");
  return Buffer.concat(Array.from(message, (byte) => Buffer.from([22, 3, 3, 0, 1, byte])));
};

const ignore = (act: () => unknown) => () => {
  try {
    act();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
  }
};

/** What looks at text of callers, upstreams or operators. */
const READERS: readonly [name: string, read: (text: string) => void][] = [
  ["a destination", (text) => parseDestination(text)],
  ["a repository's URL", (text) => repositoryUrl(text)],
  ["a host of a credential", (text) => isAllowedHost(text)],
  ["a host against a list", (text) => isHostListed(text, ["*.a.test", "b.test"])],
  ["a path of the git door", (text) => ignore(() => readGitTarget("GET", `/git/h.test/${text}`))()],
  ["a TLS greeting of 60,000 bytes in as many records", (text) => readClientHello(inRecords(text))],
  ["the name of a tool", (text) => mcpModelName(text, text)],
  [
    "the schema of a tool",
    (text) => ignore(() => sanitizeSchema(Buffer.from(JSON.stringify({ [text]: text }))))(),
  ],
  ["betas of a model request", (text) => ignore(() => judgeBetas(text))()],
  ["text for a record", (text) => recordText(text)],
  ["text for a terminal", (text) => visible(text)],
  [
    "an answer with structured content",
    (text) => {
      const result = `{"result":{"structuredContent":${JSON.stringify(text)}}}`;
      structuredText({}, [text, `data: ${text}`, result, `${"data: {}\n\n".repeat(text.length / 10)}`]);
    },
  ],
  [
    "an answer that is scanned",
    (text) => {
      const redactor = createRedactor("a".repeat(16), "vcrd_1");
      redactor.push(Buffer.from(text));
      redactor.flush();
    },
  ],
  ["a policy", (text) => ignore(() => readPolicy(`version: 1\ndefault: { mcp: [{ to: ["${text}"] }] }`))()],
];

const SHORT = 2_000;
const TIMES = 32;
/** 32 for what takes as long as its input is; 1,024 for a square. */
const MOST_GROWTH = 250;
/** Below that the clock and the collector are what is measured. */
const NOISE_MS = 3;

describe("text of others", function () {
  this.timeout(120_000);

  for (const [name, read] of READERS) {
    it(`${name} is read in time that grows with its length, whatever it is [A154, A112]`, () => {
      for (const [shape, make] of SHAPES) {
        const [short, long] = [SHORT, SHORT * TIMES].map((length) => fastest(() => read(make(length))));
        const growth = (long as number) / Math.max(short as number, NOISE_MS / TIMES);
        assert.ok(
          (long as number) < NOISE_MS * TIMES || growth < MOST_GROWTH,
          `${shape}: ${TIMES} times the length took ${growth.toFixed(0)} times as long`,
        );
      }
    });
  }

  it("a measure that could not fail would show nothing: a pattern that tries all ways is found", () => {
    const evil = /^(a+)+$/;
    const [short, long] = [8, 25].map((length) => fastest(() => evil.test(`${"a".repeat(length)}!`)));
    assert.ok((long as number) / Math.max(short as number, 0.001) > MOST_GROWTH);
  });

  it("a policy full of patterns is refused, not tried", () => {
    assert.throws(() => readPolicy('version: 1\ndefault: { mcp: [{ to: ["(a+)+$"] }] }'), PolicyInvalid);
  });
});

/** The fastest of a few runs, in milliseconds: others are on this machine too. */
function fastest(act: () => void): number {
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 4; i++) {
    const begun = performance.now();
    act();
    best = Math.min(best, performance.now() - begun);
  }
  return best;
}
