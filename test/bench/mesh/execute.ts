import { randomUUID } from "node:crypto";
import { createClient } from "../../../services/common/grpc/create-client.ts";
import { newId } from "../../../services/common/ids/new-id.ts";
import { SandboxServiceService } from "../../../services/gen/ganglion/sandbox/v1/sandbox_service.ts";
import type { Benchmark } from "../report/run-suites.ts";
import { median, type Pair, ratios } from "../report/statistics.ts";
import { timeOf } from "../report/time-of.ts";
import type { MeshStand } from "../stands/mesh-stand.ts";
import { prepareBareJail } from "./bare-jail.ts";

const FIGURE = "execute_ratio_p50";
const WARM_UP = 5;
const PAIRS = 100;

/** One Execute of `true` in a hand that is there, over gRPC, against a bare bubblewrap that runs /bin/true. */
export const executeBenchmark: Benchmark<MeshStand> = {
  figures: [FIGURE],
  async run(stand, { say, report }) {
    const harness = await stand.startHarness();
    const [sessionId = ""] = await stand.createSessions(1, { name: "bench hands", model: "claude-opus-5-5" });
    const epoch = await harness.acquire(sessionId);
    const hands = createClient(
      SandboxServiceService,
      stand.mesh.address("sandbox-1"),
      harness.tls,
      "sandbox",
    );
    stand.cleanUps.add(() => hands.close());
    const { hand } = await hands.provision({
      requestId: randomUUID(),
      sessionId,
      epoch,
      resources: undefined,
      repositories: [],
    });
    const spawnBare = prepareBareJail(stand.cleanUps);
    const execute = async () => {
      const { execution } = await hands.execute({
        sessionId,
        handId: hand?.id ?? "",
        key: newId("sevt"),
        epoch,
        name: "bash",
        inputJson: Buffer.from('{"command":"true"}'),
        timeout: undefined,
        acknowledgedKeys: [],
      });
      if (execution?.exitCode !== 0) throw new Error(`true failed in the hand: ${execution?.output}`);
    };
    const pairs: Pair[] = [];
    for (let n = 0; n < WARM_UP + PAIRS; n++) {
      const pair = { ours: await timeOf(execute), baseline: await timeOf(spawnBare) };
      if (n >= WARM_UP) pairs.push(pair);
    }
    const value = median(ratios(pairs));
    const baseline = median(pairs.map((pair) => pair.baseline));
    const ours = median(pairs.map((pair) => pair.ours));
    say(`${FIGURE}: Execute ${ours.toFixed(2)} ms, bare bubblewrap ${baseline.toFixed(2)} ms`);
    report({ name: FIGURE, value, unit: "ratio", baseline, ratio: value, n: PAIRS });
  },
};
