import { get } from "node:http";
import { connectMesh, type Mesh } from "../client/connect-mesh.ts";
import { type Finding, ill, well } from "./finding.ts";
import type { MeshReport } from "./mesh-report.ts";

const TIMEOUT_MS = 5000;

/** examineDoors calls through both public addresses, as a client would. */
export async function examineDoors(stateDir: string, { ports }: MeshReport): Promise<Finding[]> {
  return Promise.all([examineRest(ports.rest as number), examineGrpc(stateDir, ports.grpc as number)]);
}

function examineRest(port: number): Promise<Finding> {
  return new Promise((resolve) => {
    const part = "REST";
    const call = get(
      `http://127.0.0.1:${port}/v1/agents`,
      { timeout: TIMEOUT_MS, agent: false },
      (response) => {
        response.resume();
        // Without a key nothing else may come.
        if (response.statusCode === 401) resolve(well(part, `answers on 127.0.0.1:${port}`));
        else resolve(ill(part, `127.0.0.1:${port} answers ${response.statusCode} to a caller without a key`));
      },
    );
    call.on("timeout", () => call.destroy(new Error("no answer in time")));
    call.on("error", (error) => resolve(ill(part, `127.0.0.1:${port}: ${error.message}`)));
  });
}

async function examineGrpc(stateDir: string, port: number): Promise<Finding> {
  const part = "gRPC";
  let mesh: Mesh;
  try {
    mesh = connectMesh(stateDir);
  } catch (error) {
    // What is at fault is what a client is told to use, not the door.
    return ill("client.env", (error as Error).message, "ganglion down, then ganglion up writes it anew");
  }
  try {
    try {
      await mesh.agents.listAgents(
        {
          pageSize: 1,
          pageToken: "",
          includeArchived: false,
          createdAtOrAfter: undefined,
          createdAtOrBefore: undefined,
          workspaceId: "",
        },
        { timeoutMs: TIMEOUT_MS },
      );
    } finally {
      mesh.close();
    }
    return well(part, `answers on 127.0.0.1:${port}`);
  } catch (error) {
    return ill(part, `127.0.0.1:${port}: ${(error as Error).message}`);
  }
}
