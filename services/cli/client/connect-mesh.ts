import { dirname } from "node:path";
import { createClient, type MeshClient } from "../../common/grpc/create-client.ts";
import { TlsBundle } from "../../common/tls/tls-bundle.ts";
import { AgentServiceService } from "../../gen/ganglion/agent/v1/agent_service.ts";
import { EnvironmentServiceService } from "../../gen/ganglion/agent/v1/environment_service.ts";
import { AuditServiceService } from "../../gen/ganglion/audit/v1/audit_service.ts";
import { ToolPinServiceService } from "../../gen/ganglion/mcpproxy/v1/tool_pin_service.ts";
import { SessionServiceService } from "../../gen/ganglion/session/v1/session_service.ts";
import { VaultServiceService } from "../../gen/ganglion/vault/v1/vault_service.ts";
import { CliError, EXIT } from "../terminal/exit-codes.ts";
import { type ClientEnv, readClientEnv } from "../up/client-env.ts";
import { meshFiles } from "../up/mesh-files.ts";

/** Clients of the public gRPC address, with the operator's certificate. */
export interface Mesh {
  readonly env: ClientEnv;
  readonly sessions: MeshClient<typeof SessionServiceService>;
  readonly agents: MeshClient<typeof AgentServiceService>;
  readonly environments: MeshClient<typeof EnvironmentServiceService>;
  readonly vaults: MeshClient<typeof VaultServiceService>;
  readonly audit: MeshClient<typeof AuditServiceService>;
  readonly toolPins: MeshClient<typeof ToolPinServiceService>;
  close(): void;
}

/** connectMesh opens the mesh whose client.env lies in a state folder. Nothing is dialled before the first call. */
export function connectMesh(stateDir: string): Mesh {
  const path = meshFiles(stateDir).clientEnv;
  const env = readClientEnv(path);
  const { GANGLION_GRPC_ADDR: address, GANGLION_CERT: certificate } = env ?? {};
  if (!env) throw new CliError(`no mesh was started here (${path} is missing)`, EXIT.noInput, "ganglion up");
  if (!address || !certificate) {
    throw new CliError(
      `${path} is damaged: it names no address or no certificate`,
      EXIT.noInput,
      "ganglion down, then ganglion up writes it anew",
    );
  }
  const tls = new TlsBundle(dirname(certificate));
  const made: { close(): void }[] = [];
  const client = <D extends Parameters<typeof createClient>[0]>(definition: D): MeshClient<D> => {
    // Retries are for services; a person sees at once what is wrong.
    const one = createClient(definition, address, tls, "gateway", { image: null });
    made.push(one);
    return one;
  };
  return {
    env,
    sessions: client(SessionServiceService),
    agents: client(AgentServiceService),
    environments: client(EnvironmentServiceService),
    vaults: client(VaultServiceService),
    audit: client(AuditServiceService),
    toolPins: client(ToolPinServiceService),
    close: () => {
      for (const one of made) one.close();
      tls.close();
    },
  };
}
