import assert from "node:assert/strict";
import fc from "fast-check";
import { createRedactors } from "../../../services/mcp-proxy/domain/redact-all.ts";
import { createRedactor, type Redactor } from "../../../services/mcp-proxy/domain/redactor.ts";

/** Bytes of a secret as it may come back; each at every offset at which base64 can meet it. */
const ENCODINGS: Record<string, (secret: string) => Buffer[]> = {
  raw: (secret) => [Buffer.from(secret)],
  json: (secret) => [Buffer.from(JSON.stringify(secret).slice(1, -1))],
  "json with escaped slashes": (secret) => [
    Buffer.from(JSON.stringify(secret).slice(1, -1).replaceAll("/", "\\/")),
  ],
  hex: (secret) => [Buffer.from(Buffer.from(secret).toString("hex"))],
  "hex in upper case": (secret) => [Buffer.from(Buffer.from(secret).toString("hex").toUpperCase())],
  percent: (secret) => [Buffer.from(encodeURIComponent(secret))],
  "utf-16": (secret) => [Buffer.from(secret, "utf16le")],
  base64: (secret) => offsets(secret).map((bytes) => Buffer.from(bytes.toString("base64"))),
  base64url: (secret) => offsets(secret).map((bytes) => Buffer.from(bytes.toString("base64url"))),
};

function offsets(secret: string): Buffer[] {
  return ["", "u", "us"].map((before) => Buffer.from(`${before}${secret}:tail`));
}

/** Printable secrets as they may be stored: of at least 8 bytes, fit for a header. */
const SECRETS = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  minLength: 8,
  maxLength: 48,
});
const FILLER = fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes));

/** What comes out for each way to cut the bytes into the pieces that end at `cuts`. */
function run(redactor: Redactor, bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const ends = [...new Set(cuts.map((cut) => Math.min(cut, bytes.length)))].sort((a, b) => a - b);
  const out: Buffer[] = [];
  let from = 0;
  for (const end of [...ends, bytes.length]) {
    out.push(Buffer.from(redactor.push(bytes.subarray(from, end))));
    from = end;
  }
  out.push(redactor.flush());
  return out;
}

describe("the redactor, whatever the secret and the pieces", function () {
  this.timeout(60_000);

  for (const [name, encode] of Object.entries(ENCODINGS)) {
    it(`leaves nothing of it: ${name} [A058] [A060]`, () => {
      fc.assert(
        fc.property(
          SECRETS,
          FILLER,
          FILLER,
          fc.array(fc.nat(400), { maxLength: 12 }),
          (secret, before, after, cuts) => {
            for (const form of encode(secret)) {
              const bytes = Buffer.concat([before, form, after]);
              const redactor = createRedactor(secret, "vcrd_1");
              const out = Buffer.concat(run(redactor, bytes, cuts));
              assert.ok(redactor.count >= 1);
              assert.ok(!out.includes(form) || form.includes("[REDACTED:vcrd_1]"));
              assert.ok(!out.includes(secret));
            }
          },
        ),
        { numRuns: 300 },
      );
    });
  }

  it("gives the same whatever the pieces, and at every single boundary [A060]", () => {
    fc.assert(
      fc.property(SECRETS, FILLER, FILLER, (secret, before, after) => {
        const bytes = Buffer.concat([before, Buffer.from(secret), after, Buffer.from(secret.slice(0, 5))]);
        const whole = Buffer.concat(run(createRedactor(secret, "c"), bytes, []));
        for (let cut = 0; cut <= bytes.length; cut += 1) {
          const parts = run(createRedactor(secret, "c"), bytes, [cut]);
          assert.deepEqual(Buffer.concat(parts), whole, `cut at ${cut}`);
        }
        const single = run(createRedactor(secret, "c"), bytes, [...bytes.keys()]);
        assert.deepEqual(Buffer.concat(single), whole);
      }),
      { numRuns: 60 },
    );
  });

  it("gives away no more than 3 bytes of its beginning before it knows [A060]", () => {
    fc.assert(
      fc.property(SECRETS, FILLER, (secret, before) => {
        fc.pre(!before.includes(secret[0] as string));
        const redactor = createRedactor(secret, "c");
        const half = secret.slice(0, -1);
        const out = redactor.push(Buffer.concat([before, Buffer.from(half)]));
        for (let length = 4; length <= half.length; length += 1) {
          assert.ok(!out.subarray(-length).equals(Buffer.from(half.slice(0, length))));
        }
      }),
      { numRuns: 300 },
    );
  });

  it("passes what is no secret as it is, to the last byte", () => {
    fc.assert(
      fc.property(
        SECRETS,
        fc.uint8Array({ maxLength: 2000 }),
        fc.array(fc.nat(2000)),
        (secret, data, cuts) => {
          const bytes = Buffer.from(data);
          fc.pre(!bytes.includes(secret));
          const redactor = createRedactor(secret, "c");
          const out = Buffer.concat(run(redactor, bytes, cuts));
          if (redactor.count === 0) assert.deepEqual(out, bytes);
        },
      ),
      { numRuns: 300 },
    );
  });

  it("of a secret that begins like another one the longer is removed whole, without a tail [A064]", () => {
    const [short, long] = ["sk-live-1", "sk-live-12345"];
    const secrets = [
      { value: short, label: "short" },
      { value: long, label: "long" },
    ];
    const bytes = Buffer.from(`a ${long} b ${short} c ${short}${long} d sk-live-`);
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const out = Buffer.concat(run(createRedactors(secrets), bytes, [cut])).toString();
      assert.equal(
        out,
        "a [REDACTED:long] b [REDACTED:short] c [REDACTED:short][REDACTED:long] d sk-live-",
        `cut at ${cut}`,
      );
    }
    fc.assert(
      fc.property(SECRETS, SECRETS, FILLER, fc.array(fc.nat(300)), (a, tail, before, cuts) => {
        const two = [
          { value: a, label: "a" },
          { value: `${a}${tail}`, label: "b" },
        ];
        const text = Buffer.concat([before, Buffer.from(`${a}${tail}`)]);
        const out = Buffer.concat(run(createRedactors(two), text, cuts)).toString("latin1");
        assert.ok(!out.includes(tail) || "[REDACTED:b]".includes(tail), "a tail is left");
      }),
      { numRuns: 300 },
    );
  });
});
