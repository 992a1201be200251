import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { newId } from "../../../services/common/ids/new-id.ts";
import { McpProxyServiceService } from "../../../services/gen/ganglion/mcpproxy/v1/mcp_proxy_service.ts";
import { ToolOutcome } from "../../../services/gen/ganglion/types/v1/event.ts";
import { ANYWHERE, askFrom, HandKit } from "../../contract/mcp-proxy/hand-kit.ts";
import type { RunningService } from "../../kit/start-service.ts";
import type { CleanUps } from "../report/clean-ups.ts";
import type { CallEnd } from "../report/until-refused.ts";
import type { CallStand } from "./calls.ts";

const MODEL = "claude-test";

/** A session, and a call with its token. */
export interface Caller {
  readonly sessionId: string;
  call(replica: RunningService): Promise<CallEnd>;
}

/** Makes sessions that call at one door. */
export type Door = () => Promise<Caller>;

/** mcpDoor is CallTool over gRPC. */
export function mcpDoor({ kit, origin }: CallStand): Door {
  return async () => {
    const servers = [{ name: "bench", url: `${origin}/mcp`, secret: "bench-token-9876543210" }];
    const { sessionId, token } = await kit.bound({ servers });
    const options = { metadata: { "ganglion-session-token": token } };
    const call = async ({ listening }: RunningService): Promise<CallEnd> => {
      const client = await kit.client(McpProxyServiceService, "harness", "harness-1", listening.addr);
      const request = {
        ...{ mcpServerName: "bench", name: "now", inputJson: Buffer.from("{}"), key: newId("sevt") },
        ...{ timeout: undefined, acknowledgedKeys: [] },
      };
      try {
        const answer = await client.callTool(request, options);
        return answer.call?.outcome === ToolOutcome.TOOL_OUTCOME_COMPLETED ? "served" : "cut";
      } catch (error) {
        if (!GanglionError.is(error)) throw error;
        return { refused: error.reason };
      }
    };
    return { sessionId, call };
  };
}

/** modelDoor is POST /v1/messages, not streamed. */
export async function modelDoor({ kit }: CallStand): Promise<Door> {
  const door = await kit.door();
  const messages = [{ role: "user", content: "Hello." }];
  const body = JSON.stringify({ model: MODEL, max_tokens: 10, messages });
  return async () => {
    const { sessionId, token } = await kit.bound({ models: [MODEL] });
    const headers = {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "anthropic-version": "2023-06-01",
    };
    const call = (replica: RunningService) =>
      unlessBroken(async () => {
        const url = `https://${kit.doorAddress(replica)}/v1/messages`;
        const answer = await door.fetch(url, { method: "POST", headers, body });
        await answer.text();
        return answer.ok
          ? "served"
          : { refused: answer.headers.get("ganglion-reason") ?? `status ${answer.status}` };
      });
    return { sessionId, call };
  };
}

/** egressDoor is a hand's request by plain http, over a connection of its own. */
export function egressDoor({ kit, origin }: CallStand, cleanUps: CleanUps): Door {
  const kits = new Map<RunningService, HandKit>();
  const kitAt = (replica: RunningService) => {
    const known = kits.get(replica) ?? new HandKit(kit, replica);
    if (!kits.has(replica)) cleanUps.add(() => known.stop());
    kits.set(replica, known);
    return known;
  };
  return async () => {
    const hand = await kitAt(kit.service).hand({ networking: ANYWHERE });
    const ways = new Map([[kit.service, hand]]);
    const call = async (replica: RunningService) => {
      const way = ways.get(replica) ?? { ...hand, port: await kitAt(replica).forward(hand.token) };
      ways.set(replica, way);
      return unlessBroken(async () => {
        const { status, reason } = await askFrom(way, `${origin}/v1/messages`);
        return status === 200 ? "served" : { refused: reason ?? `status ${status}` };
      });
    };
    return { sessionId: hand.sessionId, call };
  };
}

/** An answer that broke off, or never began, is that of a call that was cut. */
async function unlessBroken(call: () => Promise<CallEnd>): Promise<CallEnd> {
  try {
    return await call();
  } catch {
    return "cut";
  }
}
