import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";

const ROOT = new URL("../../../", import.meta.url);
const GUARANTEES = readFileSync(new URL("docs/GUARANTEES.md", ROOT), "utf8");

/** The proofs of one guarantee: a test file and the title of a test or suite in it. */
function proofsOf(section: string): { file: string; title: string }[] {
  const lines = section.matchAll(/^- `(test\/[^`]+)` › (.+)$/gm);
  return [...lines].map(([, file = "", title = ""]) => ({ file, title }));
}

/** Titles of tests and suites in a file, without the ids of cases that they cite. */
function titlesOf(file: string): string[] {
  const source = readFileSync(new URL(file, ROOT), "utf8");
  const titles = source.matchAll(/\b(?:it|describe)\(\s*(['"`])((?:(?!\1).)*)\1/gs);
  return [...titles].map(([, , title = ""]) => title.replace(/(\s*\[[^\]]+\])+$/, ""));
}

describe("docs/GUARANTEES.md", () => {
  const sections = GUARANTEES.split(/^(?=\*\*[A-Z]\d+\. )/m).slice(1);

  it("states guarantees", () => {
    assert.ok(sections.length >= 10, String(sections.length));
  });

  for (const section of sections) {
    const name = section.slice(2, section.indexOf("."));
    it(`${name} names tests that exist`, () => {
      const proofs = proofsOf(section);
      assert.ok(proofs.length > 0, "no proof");
      for (const { file, title } of proofs) {
        assert.ok(existsSync(new URL(file, ROOT)), `there is no ${file}`);
        assert.ok(titlesOf(file).includes(title), `${file} has no test titled: ${title}`);
      }
    });
  }
});
