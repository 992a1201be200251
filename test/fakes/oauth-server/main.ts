import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Journal } from "../process/journal.ts";
import { listenOnLoopback } from "../process/listen-on-loopback.ts";
import { readDescriptor } from "../process/read-descriptor.ts";
import { runFake } from "../process/run-fake.ts";
import { bearerOf, createSecretCheck } from "../process/secret-check.ts";
import {
  agree,
  createAuthorizationServer,
  followTokens,
  type KnownClient,
  mint,
} from "./authorization-server.ts";
import { answerMcp } from "./protected-mcp.ts";

await runFake(async () => {
  const secrets = readDescriptor(["journal_token", "client_secret"]);
  const journal = new Journal(secrets.journal_token);
  const isController = createSecretCheck(secrets.journal_token);
  const clientSecret = secrets.client_secret ?? "";
  const clients: KnownClient[] = [
    { client_id: "public-client", token_endpoint_auth_method: "none" },
    {
      client_id: "basic-client",
      client_secret: clientSecret,
      token_endpoint_auth_method: "client_secret_basic",
    },
    {
      client_id: "post-client",
      client_secret: clientSecret,
      token_endpoint_auth_method: "client_secret_post",
    },
  ];
  const terms = { accessTtlS: 3600 };
  /** Access tokens from before are refused, whatever their life. */
  let refusedBefore = 0;

  let handle = (_request: IncomingMessage, response: ServerResponse): void =>
    void response.writeHead(503).end();
  const server = createServer((request, response) => handle(request, response));
  // On a busy machine five seconds pass between two requests, and a connection that is just being closed is an accident.
  server.keepAliveTimeout = 60_000;
  const addr = await listenOnLoopback(server);
  const issuer = `http://${addr}`;
  const resource = `${issuer}/mcp`;
  const provider = createAuthorizationServer(issuer, resource, clients, terms);
  const serveProvider = provider.callback();
  const tokens = followTokens(provider);

  const isGood = async (token: string | undefined) => {
    const found = token === undefined ? undefined : await provider.AccessToken.find(token);
    return found !== undefined && (found.iat ?? 0) * 1000 >= refusedBefore && found.aud === resource;
  };
  const control = async (url: URL, response: ServerResponse) => {
    const ask = (name: string) => url.searchParams.get(name);
    if (ask("access_ttl_s")) terms.accessTtlS = Number(ask("access_ttl_s"));
    // Times of tokens are whole seconds.
    if (ask("refuse_old")) refusedBefore = (Math.floor(Date.now() / 1000) + 1) * 1000;
    const minted = ask("mint");
    const made = minted === null ? {} : await mint(provider, resource, minted);
    const body = ask("tokens") ? { tokens } : made;
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
  };
  const route = async (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? "/", issuer);
    if (url.pathname === "/journal") return journal.serve(request, response, url);
    if (url.pathname === "/control") {
      if (!isController(bearerOf(request.headers))) return void response.writeHead(401).end();
      return control(url, response);
    }
    if (url.pathname.startsWith("/.well-known/oauth-protected-resource")) {
      journal.write("resource_metadata", { path: url.pathname });
      const metadata = { resource, authorization_servers: [issuer], scopes_supported: ["mcp"] };
      return void response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify(metadata));
    }
    if (url.pathname === "/mcp") {
      const token = bearerOf(request.headers);
      const good = await isGood(token);
      journal.write("mcp", { token: token ? digestOf(token) : "", accepted: good });
      if (!good) {
        const challenge = `Bearer resource_metadata="${issuer}/.well-known/oauth-protected-resource/mcp"`;
        return void response.writeHead(401, { "www-authenticate": challenge }).end("a token is needed");
      }
      return answerMcp(request, response);
    }
    if (url.pathname.startsWith("/interaction/")) return agree(provider, resource, request, response);
    if (url.pathname === "/token") await noteToken(journal, request, response);
    else if (url.pathname === "/reg") journal.write("register", {});
    await serveProvider(request, response);
  };
  handle = (request, response) => {
    route(request, response).catch((error: Error) => {
      journal.write("failed", { error: error.message });
      if (!response.headersSent) response.writeHead(500);
      response.end();
    });
  };
  const stop = async () => {
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  };
  return { listening: { addr, issuer, url: resource }, stop };
});

/** Writes down how a client asked at the token endpoint, without any secret, and how it was answered. */
async function noteToken(
  journal: Journal,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const form = new URLSearchParams(Buffer.concat(chunks).toString("utf8"));
  // oidc-provider takes a body that somebody parsed before it.
  (request as IncomingMessage & { body?: unknown }).body = Object.fromEntries(form);
  const authentication = request.headers.authorization?.startsWith("Basic ")
    ? "basic"
    : form.has("client_secret")
      ? "post"
      : "none";
  response.once("finish", () => {
    journal.write("token", {
      grant: form.get("grant_type"),
      authentication,
      scope: form.get("scope"),
      resource: form.get("resource"),
      status: response.statusCode,
    });
  });
}

function digestOf(token: string): string {
  return createHash("sha256").update(token).digest("hex").slice(0, 16);
}
