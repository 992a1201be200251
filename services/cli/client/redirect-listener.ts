import { timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What a browser brought back from an authorization server. */
export type RedirectAnswer =
  | { readonly code: string; readonly iss: string }
  /** The server's word for why there is no code. */
  | { readonly error: string };

/** A listener on this machine for one redirect. */
export interface RedirectListener {
  /** Where the browser shall come to. */
  readonly redirectUri: string;
  /** The answer that carries this state; everything else is turned away. */
  answer(state: string, timeoutMs: number): Promise<RedirectAnswer | undefined>;
  close(): Promise<void>;
}

const PATH = "/callback";
const DONE = "You are connected. You can close this window and go back to the terminal.";
const NOT_DONE = "The authorization did not succeed. The terminal says more.";

/**
 * startRedirectListener listens on a loopback port, the only place from which the answer can come. It takes a GET of one path,
 * addressed to it by its own name (a page elsewhere whose name was pointed here has another Host, case A040), not sent by a
 * page (Origin), with the one state; the first that fits is the answer, and there is no second.
 */
export async function startRedirectListener(port: number): Promise<RedirectListener> {
  let wanted: { state: string; take: (answer: RedirectAnswer) => void } | undefined;
  const server = createServer((request, response) => {
    const answer = wanted && readAnswer(request, own(), wanted.state);
    const take = wanted?.take;
    if (typeof answer !== "object") return refuse(response, answer ?? 404);
    wanted = undefined;
    say(response, 200, "error" in answer ? NOT_DONE : DONE);
    take?.(answer);
  });
  server.headersTimeout = 5000;
  server.maxHeadersCount = 100;
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const own = () => `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    redirectUri: `http://${own()}${PATH}`,
    answer: async (state, timeoutMs) => {
      const { promise, resolve } = Promise.withResolvers<RedirectAnswer | undefined>();
      const timer = setTimeout(() => resolve(undefined), timeoutMs);
      wanted = { state, take: resolve };
      return promise.finally(() => {
        wanted = undefined;
        clearTimeout(timer);
      });
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

/** The answer in a request, or the status with which it is turned away. */
function readAnswer(request: IncomingMessage, own: string, state: string): RedirectAnswer | number {
  if (request.headers.host !== own) return 421;
  if (request.headers.origin !== undefined) return 403;
  if (request.method !== "GET") return 405;
  const url = new URL(request.url ?? "/", `http://${own}`);
  if (url.pathname !== PATH) return 404;
  const one = (name: string) => {
    const values = url.searchParams.getAll(name);
    return values.length === 1 ? (values[0] as string) : "";
  };
  if (!isSame(one("state"), state)) return 403;
  const code = one("code");
  if (code === "") return { error: /^[a-z_]{1,64}$/.test(one("error")) ? one("error") : "no_code" };
  return { code, iss: one("iss") };
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function refuse(response: ServerResponse, status: number): void {
  say(response, status, "There is nothing here.");
}

function say(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    "content-type": "text/plain; charset=utf-8",
    "content-security-policy": "default-src 'none'",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    connection: "close",
  });
  response.end(`${text}\n`);
}
