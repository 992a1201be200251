import { get } from "node:http";

/** Whoever waits for a start asks again soon. */
const POLL_TIMEOUT_MS = 1000;

/** A part that a service needs, as its admin port reports it. */
export interface ReadyPart {
  readonly name: string;
  readonly ok: boolean;
  readonly detail?: string;
}

/** What a service's admin port said. */
export interface Readiness {
  readonly reachable: boolean;
  readonly ok: boolean;
  readonly parts: readonly ReadyPart[];
}

/** probeReady asks a service's admin port (host:port) whether it can work. */
export function probeReady(admin: string, timeoutMs = POLL_TIMEOUT_MS): Promise<Readiness> {
  return new Promise((resolve) => {
    const fail = () => resolve({ reachable: false, ok: false, parts: [] });
    const request = get(`http://${admin}/readyz`, { timeout: timeoutMs, agent: false }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => {
        body += chunk;
      });
      response.on("error", fail);
      response.on("end", () => resolve(parse(response.statusCode === 200, body)));
    });
    request.on("timeout", () => request.destroy());
    request.on("error", fail);
  });
}

function parse(ok: boolean, body: string): Readiness {
  try {
    const { parts } = JSON.parse(body) as { parts?: ReadyPart[] };
    return { reachable: true, ok, parts: parts ?? [] };
  } catch {
    return { reachable: true, ok, parts: [] };
  }
}
