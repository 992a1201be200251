import { randomBytes } from "node:crypto";
import { createRedactor } from "../../../services/mcp-proxy/domain/redactor.ts";
import type { Benchmark } from "../report/run-suites.ts";
import { median } from "../report/statistics.ts";

const MIB = 32;
const CHUNK = 65_536;
const ROUNDS = 15;

/** The search of an answer for one credential in all its forms: text without it, in pieces as they come off a socket. */
export const scanBenchmark: Benchmark<object> = {
  figures: ["scan_mib_s"],
  async run(_stand, { report }) {
    const text = Buffer.from(randomBytes((MIB << 20) * 0.75).toString("base64"));
    const speeds: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const redactor = createRedactor(`sk-${randomBytes(24).toString("base64url")}`, "vcrd_1");
      const begun = performance.now();
      for (let at = 0; at < text.length; at += CHUNK) redactor.push(text.subarray(at, at + CHUNK));
      redactor.flush();
      speeds.push((text.length / 2 ** 20 / (performance.now() - begun)) * 1000);
    }
    report({
      name: "scan_mib_s",
      value: median(speeds),
      unit: "MiB/s",
      baseline: null,
      ratio: null,
      n: ROUNDS,
    });
  },
};
