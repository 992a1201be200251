import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { REQUIREMENTS } from "../../requirements.ts";

const TESTS = new URL("../../", import.meta.url);

/** Ids in square brackets in the titles of tests and suites, one or a list of them; skipped ones do not count. */
function citedIds(): Set<string> {
  const cited = new Set<string>();
  const titles = /\b(?:it|describe)\(\s*(['"`])((?:(?!\1).)*)\1/gs;
  for (const name of readdirSync(TESTS, { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".test.ts")) continue;
    for (const [, , title = ""] of readFileSync(new URL(name, TESTS), "utf8").matchAll(titles)) {
      for (const [, ids = ""] of title.matchAll(/\[([ABML]\d+(?:, ?[ABML]\d+)*)\]/g)) {
        for (const id of ids.split(/, ?/)) cited.add(id);
      }
    }
  }
  return cited;
}

describe("the manifest of cases", () => {
  it("names each id once", () => {
    const ids = REQUIREMENTS.map((requirement) => requirement.id);
    assert.deepEqual([...new Set(ids)], ids);
  });

  it("has a test for each of its ids", () => {
    const cited = citedIds();
    const missing = REQUIREMENTS.filter(({ id }) => !cited.has(id)).map(({ id, shows }) => `${id}: ${shows}`);
    assert.deepEqual(missing, []);
  });
});
