import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** An MCP server that is its own authorization server, and lies as a test wants. */
export class HostileAuthorization {
  /** "GET /path" of every request. */
  readonly seen: string[] = [];
  /** Changes of the documents; undefined removes a field. */
  resource: Record<string, unknown> = {};
  metadata: Record<string, unknown> = {};
  /** Challenge of the MCP server; undefined = the usual one. */
  challenge: string | undefined;
  /** Path and where it redirects to. */
  redirects: Record<string, string> = {};
  /** What the token endpoint answers. */
  token: { status: number; body: string } = { status: 400, body: '{"error":"invalid_grant"}' };
  #server = createServer((request, response) => this.#serve(request, response));

  static async start(): Promise<HostileAuthorization> {
    const made = new HostileAuthorization();
    made.#server.listen(0, "127.0.0.1");
    await once(made.#server, "listening");
    return made;
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get issuer(): string {
    return `http://${this.host}`;
  }

  get url(): string {
    return `${this.issuer}/mcp`;
  }

  /** Tells the truth again, and forgets. */
  reset(): void {
    this.seen.length = 0;
    this.resource = {};
    this.metadata = {};
    this.challenge = undefined;
    this.redirects = {};
    this.token = { status: 400, body: '{"error":"invalid_grant"}' };
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const { pathname } = new URL(request.url ?? "/", this.issuer);
    this.seen.push(`${request.method} ${pathname}`);
    request.resume();
    const redirect = this.redirects[pathname];
    if (redirect !== undefined) return void response.writeHead(302, { location: redirect }).end();
    if (pathname === "/mcp") {
      const usual = `Bearer resource_metadata="${this.issuer}/.well-known/oauth-protected-resource/mcp"`;
      return void response.writeHead(401, { "www-authenticate": this.challenge ?? usual }).end();
    }
    if (pathname.startsWith("/.well-known/oauth-protected-resource")) {
      json(response, 200, {
        resource: this.url,
        authorization_servers: [this.issuer],
        ...this.resource,
      });
      return;
    }
    if (pathname === "/.well-known/oauth-authorization-server") {
      json(response, 200, {
        issuer: this.issuer,
        authorization_endpoint: `${this.issuer}/authorize`,
        token_endpoint: `${this.issuer}/token`,
        registration_endpoint: `${this.issuer}/register`,
        response_types_supported: ["code"],
        code_challenge_methods_supported: ["S256"],
        token_endpoint_auth_methods_supported: ["none"],
        authorization_response_iss_parameter_supported: true,
        ...this.metadata,
      });
      return;
    }
    if (pathname === "/register") {
      json(response, 201, { client_id: "made-just-now" });
      return;
    }
    if (pathname === "/token") {
      response.writeHead(this.token.status, { "content-type": "application/json" });
      return void response.end(this.token.body);
    }
    response.writeHead(404).end();
  }
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
