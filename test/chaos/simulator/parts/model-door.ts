import { GanglionError } from "../../../../services/common/errors/ganglion-error.ts";
import { type ServerStream, serverStream } from "../../../../services/common/grpc/handlers.ts";
import { pause } from "../../../../services/harness/driver/pause.ts";
import type { LiveSessions } from "../../../../services/mcp-proxy/domain/live-sessions.ts";
import { endingOf, openPassage, type PassageDeps } from "../../../../services/mcp-proxy/domain/passage.ts";
import { proxyError } from "../../../../services/mcp-proxy/domain/proxy-error.ts";
import type { Network } from "../core/network.ts";
import { currentProcess, type SimProcess } from "../core/virtual-time.ts";
import type { ModelPiece } from "./model-piece.ts";
import type { ScriptedMind } from "./scripted-mind.ts";

const NOWHERE = { address: "192.0.2.2", family: 4, class: "public" } as const;

/** What a brain sends. */
export interface ModelRequest {
  body: Buffer;
}

/** The model door, with the real judgement of tokens; what lies behind it is the script. */
export function modelDoor(
  deps: PassageDeps & { live: LiveSessions; outside: SimProcess; network: Network; mind: ScriptedMind },
): ServerStream<ModelRequest, ModelPiece> {
  return serverStream(async function* ({ body }, ctx) {
    const passage = await openPassage(deps, {
      token: String(ctx.metadata.get("ganglion-session-token")[0]),
      caller: ctx.principal.spiffeId,
      callerCert: "",
      operation: "model",
      target: "POST /v1/messages",
      lookup: { kinds: ["model_api_key"], urls: [], mcpServerName: "" },
      choose: () => ({}),
    });
    const { sessionId, epoch } = passage.access;
    const cut = new AbortController();
    const onCut = (reason: Parameters<typeof proxyError>[0]): void => cut.abort(proxyError(reason));
    const unregister = deps.live.add({ sessionId, epoch, endsWith: "epoch", cut: onCut });
    try {
      await passage.dispatch({ address: NOWHERE, requestBytes: body.length });
      for (const { afterMs, piece } of deps.mind.answer(sessionId, body)) {
        await pause(afterMs, AbortSignal.any([cut.signal, ctx.signal]));
        if (cut.signal.aborted) throw cut.signal.reason;
        if (ctx.signal.aborted) return;
        if (piece === "cut") throw broken();
        yield piece;
      }
      await passage.finish({ reason: "ok" });
    } catch (error) {
      await passage.finish({ reason: endingOf(error) });
      throw error;
    } finally {
      unregister();
    }
  });
}

/** The connection broke in the middle of an answer. */
function broken(): GanglionError {
  const process = currentProcess.getStore()?.name ?? "";
  return new GanglionError({ code: "INTERNAL", reason: "CUT", message: `${process}: the stream broke` });
}
