// A process that serves the same bytes to every request over TLS: what a download is measured against.
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";

const [folder = "", megabytes = "64"] = process.argv.slice(2);
const bytes = randomBytes(Number(megabytes) * 1_000_000);
const server = createServer(
  { cert: readFileSync(`${folder}/cert.pem`), key: readFileSync(`${folder}/key.pem`) },
  (request, response) => {
    request.resume();
    response.writeHead(200, { "content-type": "application/octet-stream", "content-length": bytes.length });
    response.end(bytes);
  },
);
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
process.once("disconnect", () => process.exit(0));
