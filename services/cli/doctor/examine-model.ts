import { connectMesh } from "../client/connect-mesh.ts";
import { ANTHROPIC_URL, modelUrlOf, storedModelKeys } from "../client/model-key.ts";
import { type Finding, ill, weak, well } from "./finding.ts";
import type { MeshReport } from "./mesh-report.ts";

/** examineModel says who would answer a model request. */
export async function examineModel(stateDir: string, { scriptedModel }: MeshReport): Promise<Finding> {
  const part = "model";
  try {
    const mesh = connectMesh(stateDir);
    try {
      const stored = (await storedModelKeys(mesh.vaults)).map(modelUrlOf);
      const real = stored.filter((url) => url.startsWith(ANTHROPIC_URL));
      if (real.length > 0) return well(part, `a key for ${real.join(", ")} is stored`);
    } finally {
      mesh.close();
    }
    return scriptedModel
      ? weak(part, "scripted model: no real one answers", "ganglion vault model-key")
      : ill(part, "no key for a model API is stored", "ganglion vault model-key");
  } catch (error) {
    return ill(part, `cannot tell: ${(error as Error).message}`);
  }
}
