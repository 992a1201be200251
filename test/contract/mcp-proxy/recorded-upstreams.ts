import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestCa } from "../../kit/ca.ts";
import { ProxyKit } from "./proxy-kit.ts";
import type { Recorder } from "./recorder.ts";

/**
 * Starts mcp-proxy with recorders as its upstreams: their authority is trusted, plain HTTP is allowed to them, and the first
 * one is the model's API, with that key.
 */
export async function startRecorded(
  ca: TestCa,
  recorders: readonly Recorder[],
  secret: string,
): Promise<ProxyKit> {
  const caFile = join(ca.root, "upstream.pem");
  writeFileSync(caFile, ca.authority.certPem);
  const model = `https://localhost:${recorders[0]?.port}`;
  const kit = await ProxyKit.start({
    GANGLION_PROXY_ALLOW_HTTP_HOSTS: recorders.map(({ port }) => `localhost:${port}`).join(),
    GANGLION_UPSTREAM_CA_FILE: caFile,
    GANGLION_SCRIPTED_MODEL_URL: model,
  });
  await kit.storeModelKey(model, secret);
  return kit;
}
