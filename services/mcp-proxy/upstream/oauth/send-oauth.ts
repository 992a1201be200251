import { crashPoint } from "../../../common/crash/crash-point.ts";
import type { OauthTarget, Reply } from "../../domain/oauth/oauth-ports.ts";
import { exchange, toFailure } from "../exchange.ts";
import type { UpstreamPools } from "../pools.ts";
import { UpstreamFailure } from "../upstream-failure.ts";

/** One request, built from nothing. */
export interface OauthRequest {
  method: "GET" | "POST";
  headers: Record<string, string>;
  body?: string;
  /** Names whose connections these are: none is shared with another credential's (case A029). */
  connectionKey: string;
}

const TOTAL_MS = 15_000;
const MAX_BYTES = 256 << 10;

/**
 * Sends a request to its target's checked address and reads the answer to its end, or says why there is none. A redirect is
 * never followed, whatever it points at (B108); an answer that is larger than 256 KiB is given up.
 */
export async function sendOauth(
  pools: UpstreamPools,
  { url: text, destination, address, met }: OauthTarget,
  { method, headers, body, connectionKey }: OauthRequest,
): Promise<Reply> {
  const signal = AbortSignal.timeout(TOTAL_MS);
  const url = new URL(text);
  let status = 0;
  try {
    const dispatcher = pools.get(destination, address, `oauth ${connectionKey}`);
    const path = url.pathname + url.search;
    crashPoint("oauth.send");
    const answer = await exchange(dispatcher, {
      path,
      method,
      headers,
      signal,
      met,
      ...(body === undefined ? {} : { body }),
    });
    status = answer.status;
    if (status >= 300 && status < 400) {
      answer.discard();
      return { ok: false, failure: "redirect", status };
    }
    const chunks: Buffer[] = [];
    let bytes = 0;
    const contentType = answer.header("content-type") ?? "";
    for await (const chunk of answer.body) {
      bytes += chunk.length;
      if (bytes > MAX_BYTES) {
        answer.discard();
        return { ok: false, failure: "too_large", status };
      }
      chunks.push(chunk);
      // A stream of events would never end; what was asked for is in its first one.
      if (contentType.startsWith("text/event-stream") && chunk.includes("\n\n")) {
        answer.discard();
        break;
      }
    }
    crashPoint("oauth.receive");
    const challenge = answer.header("www-authenticate") ?? "";
    return { ok: true, status, contentType, challenge, body: Buffer.concat(chunks).toString("utf8"), bytes };
  } catch (error) {
    const { kind } = signal.aborted ? new UpstreamFailure("timeout") : toFailure(error, signal);
    return { ok: false, failure: kind === "unreachable" || kind === "timeout" ? kind : "broken", status };
  }
}
