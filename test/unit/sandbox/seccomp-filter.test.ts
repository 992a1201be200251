import assert from "node:assert/strict";
import { assemble } from "../../../services/sandbox/drivers/bubblewrap/bpf.ts";
import {
  buildSeccompFilter,
  DENIED_SYSCALLS,
} from "../../../services/sandbox/drivers/bubblewrap/seccomp-filter.ts";

const ALLOW = 0x7fff0000;
const X86_64 = 0xc000003e;
const errno = (value: number) => 0x00050000 | value;

/** Runs a filter as the kernel would. */
function run(filter: Buffer, call: { nr: number; arch?: number; args?: [number, number] }): number {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call.nr >>> 0, 0);
  data.writeUInt32LE((call.arch ?? X86_64) >>> 0, 4);
  data.writeUInt32LE((call.args?.[0] ?? 0) >>> 0, 16);
  data.writeUInt32LE((call.args?.[1] ?? 0) >>> 0, 24);
  let accumulator = 0;
  for (let at = 0; at < filter.length / 8; at += 1) {
    const code = filter.readUInt16LE(at * 8);
    const value = filter.readUInt32LE(at * 8 + 4);
    if (code === 0x06) return value;
    if (code === 0x20) {
      accumulator = data.readUInt32LE(value);
      continue;
    }
    const isTrue =
      code === 0x15
        ? accumulator === value
        : code === 0x35
          ? accumulator >= value
          : (accumulator & value) !== 0;
    at += filter.readUInt8(at * 8 + (isTrue ? 2 : 3));
  }
  throw new Error("the filter has no end");
}

describe("sandbox: the system call filter [A093]", () => {
  const filter = buildSeccompFilter("x64");

  it("denies what is listed and lets ordinary calls pass", () => {
    for (const [name, nr] of Object.entries(DENIED_SYSCALLS))
      assert.equal(run(filter, { nr }), errno(1), name);
    for (const nr of [0, 1, 2, 9, 39, 57, 59, 202, 231, 257, 318, 332])
      assert.equal(run(filter, { nr }), ALLOW);
  });

  it("looks at the flags of clone, at ioctl's request and at socket's family", () => {
    assert.equal(run(filter, { nr: 56, args: [0x003d0f00, 0] }), ALLOW);
    for (const flag of [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]) {
      assert.equal(run(filter, { nr: 56, args: [flag | 17, 0] }), errno(1));
    }
    assert.equal(run(filter, { nr: 16, args: [0, 0x5412] }), errno(1));
    assert.equal(run(filter, { nr: 16, args: [0, 0x5401] }), ALLOW);
    for (const family of [1, 2, 10, 16]) assert.equal(run(filter, { nr: 41, args: [family, 0] }), ALLOW);
    for (const family of [0, 17, 31, 38, 40])
      assert.equal(run(filter, { nr: 41, args: [family, 0] }), errno(97));
  });

  it("knows other ways in: clone3, x32, another architecture", () => {
    assert.equal(run(filter, { nr: 435 }), errno(38));
    assert.equal(run(filter, { nr: 0x40000000 + 101 }), errno(38));
    assert.equal(run(filter, { nr: 0xffffffff }), errno(38));
    assert.equal(run(filter, { nr: 26, arch: 0x40000003 }), 0x80000000);
    assert.throws(() => buildSeccompFilter("arm64"), /no system call filter/);
  });

  it("a jump that BPF cannot make is refused when it is assembled", () => {
    const far = Array.from({ length: 300 }, () => ({ result: 0 }));
    const jump = { test: "equal", value: 1, goTo: "end" } as const;
    assert.throws(() => assemble([jump, ...far, { label: "end" }, { result: 1 }]), RangeError);
    assert.throws(() => assemble([{ label: "end" }, { result: 1 }, jump]), RangeError);
  });
});
