import assert from "node:assert/strict";
import type { ConnectionOptions, PeerCertificate } from "node:tls";
import type { TlsBundle } from "../../../services/common/tls/tls-bundle.ts";
import { connectionSource } from "../../../services/session/store/connection-source.ts";

const where = { host: "127.0.0.1", port: 5432, database: "ganglion", user: "ganglion_session" };
const certificate = (subjectaltname: string) =>
  ({ subjectaltname, subject: {} }) as unknown as PeerCertificate;

describe("the way to the database", () => {
  const material = { ca: Buffer.from("ca 1"), cert: Buffer.from("cert 1"), key: Buffer.from("key 1") };
  const tls = { material: () => material } as unknown as TlsBundle;
  const sslOf = (more: object) => connectionSource({ ...where, ...more }, tls)().ssl as ConnectionOptions;

  it("accepts the database of the mesh and no other service that has its address", () => {
    const check = sslOf({}).checkServerIdentity;
    assert.equal(
      check?.("localhost", certificate("URI:spiffe://ganglion.local/postgres/postgres-1")),
      undefined,
    );
    for (const other of [
      "URI:spiffe://ganglion.local/harness/h, DNS:localhost",
      "DNS:localhost, IP Address:127.0.0.1",
    ]) {
      assert.ok(check?.("localhost", certificate(other)) instanceof Error, other);
    }
  });

  it("uses the certificate of the moment", () => {
    const source = connectionSource(where, tls);
    material.cert = Buffer.from("cert 2");
    assert.equal(String((source().ssl as ConnectionOptions).cert), "cert 2");
  });

  it("shows a foreign server no certificate of ours and checks its name", () => {
    const ssl = sslOf({ host: "db.example", password: "x", caPem: "ca 2" });
    assert.deepEqual(
      [ssl.ca, ssl.cert, ssl.key, ssl.rejectUnauthorized],
      ["ca 2", undefined, undefined, true],
    );
    assert.equal(ssl.checkServerIdentity?.("localhost", certificate("DNS:db.example")), undefined);
    assert.ok(ssl.checkServerIdentity?.("localhost", certificate("DNS:localhost")) instanceof Error);
  });
});
