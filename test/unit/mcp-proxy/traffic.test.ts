import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { createAuditMacs } from "../../../services/mcp-proxy/domain/audit-macs.ts";
import { createTraffic, type Traffic, trafficColumns } from "../../../services/mcp-proxy/domain/traffic.ts";
import { type McpOperation, release } from "../../../services/mcp-proxy/upstream/mcp-operation.ts";
import { loadAuditHmacKey } from "../../../services/mcp-proxy/vault/audit-hmac-key.ts";
import type { VaultClient } from "../../../services/mcp-proxy/vault/vault-client.ts";
import { CreateOnlyVault } from "../../kit/create-only-vault.ts";

const KEY = Buffer.alloc(32, 5);
const hmac = (key: Buffer, text: string) => createHmac("sha256", key).update(text).digest();
const ofBody = (text: string) => hmac(hmac(KEY, "ganglion audit body v1"), text).toString("hex");

describe("what is noted of bodies", () => {
  const traffic = (note: (of: Traffic) => void) => {
    const made = createTraffic(createAuditMacs(KEY));
    note(made);
    return made;
  };
  const post = (of: Traffic) => {
    of.sent("a ");
    of.sent(Buffer.from("body"));
    of.sentAll();
    of.answered();
    of.came(Buffer.from("an "));
    of.came(Buffer.from("answer"));
    of.cameAll();
  };
  const released = { isReleased: true, responseBytes: 9, redactions: 0 };

  it("is the HMAC of each, in whatever pieces it passes", () => {
    assert.deepEqual(trafficColumns(traffic(post), released, true), {
      request_body_hmac: ofBody("a body"),
      response_body_hmac: ofBody("an answer"),
      ...{ response_withheld: false, upstream_effect: "complete" },
    });
  });

  it("is nothing of a body that was not sent to its end, that there was not, or in which a credential stood", () => {
    const requestOf = (note: (of: Traffic) => void) =>
      trafficColumns(traffic(note), released, true).request_body_hmac;
    assert.equal(
      requestOf((of) => of.sent("half")),
      "",
    );
    assert.equal(
      requestOf((of) => of.sentAll()),
      "",
    );
    const withSecret = traffic((of) => {
      of.sentSecret();
      post(of);
      of.cameSecret();
    });
    const { request_body_hmac: sent, response_body_hmac: came } = trafficColumns(withSecret, released, true);
    assert.deepEqual([sent, came], ["", ""]);
    const redacted = trafficColumns(traffic(post), { ...released, redactions: 1 }, true);
    assert.equal(redacted.response_body_hmac, "");
  });

  it("is nothing of an answer that is cut for its length where the credential stands in its last piece", async () => {
    const secret = "sk-live-0123456789";
    const made = createTraffic(createAuditMacs(KEY));
    const operation = { secret, credentialId: "cred_1", traffic: made, responseBytes: 0, redactions: 0 };
    async function* body() {
      yield Buffer.from("begin ");
      yield Buffer.from(`and ${secret}`);
    }
    const read = async () => {
      for await (const _ of release(operation as unknown as McpOperation, body(), 10));
    };
    await assert.rejects(read, RangeError);
    const { responseBytes, redactions } = operation;
    const columns = trafficColumns(made, { responseBytes, redactions }, true);
    assert.deepEqual([redactions, columns.response_body_hmac], [1, ""]);
  });

  it("says how far it came, and that an answer was withheld unless it is said to be released", () => {
    const ends = (note: (of: Traffic) => void, isSent: boolean, isReleased = false) => {
      const columns = trafficColumns(traffic(note), { isReleased }, isSent);
      return [columns.upstream_effect, columns.response_withheld];
    };
    assert.deepEqual(
      ends(() => {}, false),
      ["none", false],
    );
    assert.deepEqual(
      ends((of) => of.sent("half"), true),
      ["sent", false],
    );
    assert.deepEqual(
      ends((of) => of.answered(), true),
      ["sent", true],
    );
    assert.deepEqual(ends(post, true), ["complete", true]);
    assert.deepEqual(ends(post, true, true), ["complete", false]);
    // What was read to be sent, and then was not, did not pass.
    const unsent = trafficColumns(
      traffic((of) => {
        of.sent("body");
        of.sentAll();
      }),
      {},
      false,
    );
    assert.equal(unsent.request_body_hmac, "");
  });
});

describe("the key of the audit log's HMACs", () => {
  const YEAR_MS = 365 * 24 * 3_600_000;
  const load = (vault: CreateOnlyVault, now: number) =>
    loadAuditHmacKey(vault as unknown as VaultClient, { mount: "ganglion", token: "t", now });

  it("is made once, gets a successor after a year, and stays for who looks something up", async () => {
    const vault = new CreateOnlyVault();
    const first = await load(vault, 1_000);
    assert.equal(first.length, 32);
    assert.deepEqual(await load(vault, YEAR_MS), first);
    const second = await load(vault, YEAR_MS + 2_000);
    assert.notDeepEqual(second, first);
    assert.deepEqual(await load(vault, YEAR_MS + 3_000), second);
    const paths = [1, 2].map((number) => `ganglion/data/proxy/audit-hmac-key-${number}`);
    assert.deepEqual([...vault.documents.keys()], paths);
    assert.notEqual(createAuditMacs(first).keyId, createAuditMacs(second).keyId);
  });

  it("is not guessed at when the document is damaged", async () => {
    for (const damaged of [
      { key: "c2hvcnQ=", created_at: new Date(0).toISOString() },
      { key: KEY.toString("base64") },
    ]) {
      const vault = new CreateOnlyVault();
      vault.documents.set("ganglion/data/proxy/audit-hmac-key-1", damaged);
      await assert.rejects(load(vault, 1_000), { kind: "malformed" });
    }
  });
});
