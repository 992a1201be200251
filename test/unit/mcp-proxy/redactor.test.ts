import assert from "node:assert/strict";
import { createRedactor } from "../../../services/mcp-proxy/domain/redactor.ts";

const SECRET = 'sk-live/ABC+"12345xyz';

describe("the redactor", () => {
  const forms: [string, string][] = [
    ["raw", SECRET],
    ["inside JSON", JSON.stringify({ header: `Bearer ${SECRET}` })],
    ["hex", Buffer.from(SECRET).toString("hex")],
    ["hex in upper case", Buffer.from(SECRET).toString("hex").toUpperCase()],
    ["percent", encodeURIComponent(SECRET)],
    ["base64", Buffer.from(SECRET).toString("base64")],
    ["base64 behind one byte", Buffer.from(`u${SECRET}`).toString("base64")],
    ["base64 behind two bytes", Buffer.from(`us${SECRET}`).toString("base64")],
    ["Basic", Buffer.from(`user:${SECRET}`).toString("base64")],
    ["base64url", Buffer.from(`>>${SECRET}??`).toString("base64url")],
    ["UTF-16LE", Buffer.from(SECRET, "utf16le").toString("latin1")],
  ];

  for (const [name, text] of forms) {
    it(`finds the secret ${name}, wherever a chunk ends [A058] [A060]`, () => {
      const bytes = Buffer.from(`before ${text} after`, "latin1");
      for (let cut = 0; cut <= bytes.length; cut += 1) {
        const redactor = createRedactor(SECRET, "vcrd_1");
        const first = redactor.push(bytes.subarray(0, cut));
        const out = Buffer.concat([first, redactor.push(bytes.subarray(cut)), redactor.flush()]).toString(
          "latin1",
        );
        assert.match(out, /\[REDACTED:vcrd_1\]/, `cut at ${cut}`);
        assert.equal(redactor.count, 1);
        assert.match(out, /^before /);
        assert.match(out, / after$/);
        assert.ok(!out.includes(text));
      }
    });
  }

  it("finds it when each byte comes alone, and never gives away the beginning of it [A060]", () => {
    const redactor = createRedactor(SECRET, "c");
    let out = "";
    for (const byte of Buffer.from(`x${SECRET}y`)) {
      out += redactor.push(Buffer.from([byte])).toString();
      assert.ok(!out.includes(SECRET.slice(0, 2)));
    }
    assert.equal(out + redactor.flush().toString(), "x[REDACTED:c]y");
  });

  it("gives at once what cannot be the beginning of the secret, and the rest at the end", () => {
    const redactor = createRedactor(SECRET, "c");
    assert.equal(redactor.push(Buffer.from("hello ")).toString(), "hello ");
    assert.equal(redactor.push(Buffer.from("world sk-li")).toString(), "world ");
    assert.equal(redactor.push(Buffer.from("on")).toString(), "sk-lion");
    assert.equal(redactor.push(Buffer.from("sk-")).toString(), "");
    assert.equal(redactor.flush().toString(), "sk-");
    assert.equal(redactor.count, 0);
  });

  it("redacts each of several places", () => {
    const redactor = createRedactor(SECRET, "c");
    const out = redactor.push(Buffer.from(`${SECRET}${SECRET} ${SECRET}`)).toString();
    assert.equal(out, "[REDACTED:c][REDACTED:c] [REDACTED:c]");
    assert.equal(redactor.count, 3);
  });

  it("passes everything when there is no secret", () => {
    const redactor = createRedactor(undefined, "");
    assert.equal(redactor.push(Buffer.from(SECRET)).toString(), SECRET);
  });
});
