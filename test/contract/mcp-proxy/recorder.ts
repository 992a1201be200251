import { createHash, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { createServer as createHttpsServer, type Server as HttpsServer } from "node:https";
import type { AddressInfo, Server } from "node:net";
import { issueCertificate } from "../../../services/common/tls/issue-certificate.ts";
import type { TestCa } from "../../kit/ca.ts";

/** A request as an upstream saw it. */
export interface SeenRequest {
  method: string;
  url: string;
  headers: Record<string, string | string[] | undefined>;
  rawHeaders: string[];
  body: Buffer;
}

/** An upstream that notes what it sees, and how many connections it got. */
export class Recorder {
  readonly seen: SeenRequest[] = [];
  connections = 0;
  readonly port: number;
  /** SHA-256 of the public key in its certificate; empty without TLS. */
  spki = "";
  /** Serves what the test wants; the body has been read. */
  listener: RequestListener = (_request, response) => void response.end("hello");
  readonly #server: Server;

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.port = port;
    server.on("connection", () => {
      this.connections += 1;
    });
  }

  /** Starts one, on 127.0.0.1 if not said otherwise; with an authority it speaks TLS, as localhost and 127.0.0.1 or those names. */
  static async start(
    ca?: TestCa,
    at: { host?: string; port?: number; dnsNames?: string[] } = {},
  ): Promise<Recorder> {
    const it: { recorder?: Recorder } = {};
    const listener: RequestListener = (request, response) => {
      const chunks: Buffer[] = [];
      request.on("error", () => {});
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const { method = "", url = "", headers, rawHeaders } = request;
        it.recorder?.seen.push({ method, url, headers, rawHeaders, body: Buffer.concat(chunks) });
        it.recorder?.listener(request, response);
      });
    };
    const named = at.dnsNames ? { dnsNames: at.dnsNames } : {};
    const leaf =
      ca && (await issueCertificate(ca.authority, { service: "vault", instance: "upstream", ...named }));
    const server = leaf
      ? createHttpsServer({ cert: leaf.certPem, key: leaf.keyPem }, listener)
      : createHttpServer(listener);
    server.listen(at.port ?? 0, at.host ?? "127.0.0.1");
    await once(server, "listening");
    it.recorder = new Recorder(server, (server.address() as AddressInfo).port);
    if (leaf) it.recorder.spki = spkiOf(leaf.certPem);
    return it.recorder;
  }

  /** Goes on with another key and certificate, on new connections; those that there are end. */
  async renew(ca: TestCa): Promise<void> {
    const leaf = await issueCertificate(ca.authority, { service: "vault", instance: "upstream" });
    (this.#server as HttpsServer).setSecureContext({ cert: leaf.certPem, key: leaf.keyPem });
    this.spki = spkiOf(leaf.certPem);
    (this.#server as HttpsServer).closeAllConnections();
  }

  stop(): void {
    this.#server.close();
    (this.#server as ReturnType<typeof createHttpServer>).closeAllConnections();
  }
}

function spkiOf(certPem: string): string {
  const spki = new X509Certificate(certPem).publicKey.export({ format: "der", type: "spki" });
  return createHash("sha256").update(spki).digest("hex");
}
