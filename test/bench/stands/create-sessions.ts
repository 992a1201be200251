import { randomUUID } from "node:crypto";
import { createClient } from "../../../services/common/grpc/create-client.ts";
import type { TlsBundle } from "../../../services/common/tls/tls-bundle.ts";
import { AgentServiceService } from "../../../services/gen/ganglion/agent/v1/agent_service.ts";
import { EnvironmentServiceService } from "../../../services/gen/ganglion/agent/v1/environment_service.ts";
import { SessionServiceService } from "../../../services/gen/ganglion/session/v1/session_service.ts";

/** The door that serves sessions, agents and environments: a session service, or a gateway. */
export interface Door {
  readonly address: string;
  readonly service: "session" | "gateway";
  /** An operator's certificate. */
  readonly tls: TlsBundle;
}

const json = (value: unknown) => Buffer.from(JSON.stringify(value));

/** createSessions makes idle sessions of one new agent, whose definition is given, and returns their ids. */
export async function createSessions(door: Door, count: number, definition: object): Promise<string[]> {
  const { address, service, tls } = door;
  const agents = createClient(AgentServiceService, address, tls, service);
  const environments = createClient(EnvironmentServiceService, address, tls, service);
  const sessions = createClient(SessionServiceService, address, tls, service);
  try {
    const { agent } = await agents.createAgent({
      requestId: randomUUID(),
      definitionJson: json(definition),
      workspaceId: "",
    });
    const { environment } = await environments.createEnvironment({
      requestId: randomUUID(),
      environmentJson: json({ name: `bench ${randomUUID()}` }),
      workspaceId: "",
    });
    const ids: string[] = [];
    for (let n = 0; n < count; n++) {
      const { session } = await sessions.createSession({
        requestId: randomUUID(),
        agentId: agent?.id ?? "",
        agentVersion: 0,
        environmentId: environment?.id ?? "",
        title: `bench ${n + 1}`,
        metadata: {},
        vaultIds: [],
        initialEvents: [],
        workspaceId: "",
        budget: undefined,
        repositories: [],
        ownVaultId: "",
      });
      ids.push(session?.id ?? "");
    }
    return ids;
  } finally {
    for (const client of [agents, environments, sessions]) client.close();
  }
}
