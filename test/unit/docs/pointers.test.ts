import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";

const ROOT = new URL("../../../", import.meta.url);
/** A path of the repository as documents name one: in code marks, from the top, with an extension or a folder. */
const POINTER = /`((?:services|test|proto|deploy|docs|\.ci)\/[A-Za-z0-9._/-]+)`/g;
const CASE = /\b[AB]\d{3}\b/g;

const documents = readdirSync(new URL("docs/", ROOT)).filter((name) => name.endsWith(".md"));

describe("documents for people who check", () => {
  for (const name of documents) {
    it(`${name} points at files that exist`, () => {
      const text = readFileSync(new URL(`docs/${name}`, ROOT), "utf8");
      const missing = [...text.matchAll(POINTER)].flatMap(([, path]) =>
        existsSync(new URL(path as string, ROOT)) ? [] : [path],
      );
      assert.deepEqual(missing, []);
    });
  }

  it("the threat model names cases that tests cite", () => {
    const [text = ""] = readFileSync(new URL("docs/THREAT_MODEL.md", ROOT), "utf8").split(
      "## Known attacks on what is not there",
    );
    const tests = readdirSync(new URL("test/", ROOT), { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".test.ts"))
      .map((path) => readFileSync(new URL(`test/${path}`, ROOT), "utf8"))
      .join("\n");
    const uncited = [...text.matchAll(CASE)]
      .map(([id]) => id)
      .filter((id) => !new RegExp(`\\[[^\\]]*\\b${id}\\b[^\\]]*\\]`).test(tests));
    assert.deepEqual([...new Set(uncited)], []);
  });
});
