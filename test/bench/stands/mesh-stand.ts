import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Authority } from "../../../services/common/tls/issue-certificate.ts";
import { TestMesh } from "../../kit/mesh.ts";
import { startScriptedModel, type TestModel } from "../../kit/scripted-model.ts";
import type { CleanUps } from "../report/clean-ups.ts";
import { type BenchHarness, startBenchHarness } from "./bench-harness.ts";
import { createSessions, type Door } from "./create-sessions.ts";
import { openIdentity } from "./identity.ts";

/** A whole mesh, and the stand-in for a model that it calls and that can also be called directly. */
export interface MeshStand {
  readonly cleanUps: CleanUps;
  readonly mesh: TestMesh;
  readonly model: TestModel;
  /** The public gRPC address, with the operator's certificate. */
  readonly door: Door;
  /** Makes idle sessions of one new agent. */
  createSessions(count: number, definition: object): Promise<string[]>;
  /** A further harness, played here; it takes only the sessions it is told to take. */
  startHarness(): Promise<BenchHarness & { readonly tls: Awaited<ReturnType<typeof openIdentity>> }>;
}

/** startMeshStand runs `ganglion up` in a state folder of its own. */
export async function startMeshStand(cleanUps: CleanUps, say: (line: string) => void): Promise<MeshStand> {
  say("starting a mesh");
  const root = mkdtempSync(join(tmpdir(), "ganglion-bench-mesh-"));
  cleanUps.add(() => rmSync(root, { recursive: true, force: true }));
  const model = await startScriptedModel();
  cleanUps.add(() => model.stop());
  const mesh = await TestMesh.start({ args: ["--scripted-model-url", model.url] });
  cleanUps.add(() => mesh.stop());
  const stored = await mesh.cli(["vault", "model-key", "--url", model.url], model.apiKey);
  if (stored.code !== 0) throw new Error(`the model's key could not be stored: ${stored.stderr}`);
  const door: Door = { address: mesh.grpc, service: "gateway", tls: mesh.tls("operator") };
  return {
    cleanUps,
    mesh,
    model,
    door,
    createSessions: (count, definition) => createSessions(door, count, definition),
    startHarness: async () => {
      const tls = await openIdentity(
        { authority: authorityOf(mesh), root, cleanUps },
        "harness",
        "harness-bench",
      );
      return { ...(await startBenchHarness(mesh.address("session-1"), tls, cleanUps)), tls };
    },
  };
}

function authorityOf({ files }: TestMesh): Authority {
  const read = (name: string) => readFileSync(join(files.tls, name), "utf8");
  return { certPem: read("ca.pem"), keyPem: read("ca.key.pem") };
}
