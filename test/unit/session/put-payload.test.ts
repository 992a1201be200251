import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { CallContext } from "../../../services/common/grpc/call-context.ts";
import type { PutPayloadRequest } from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { Role } from "../../../services/gen/ganglion/types/v1/access.ts";
import { payloadMismatch } from "../../../services/session/domain/errors.ts";
import type { PayloadStore } from "../../../services/session/ports/payload-store.ts";
import { putPayload } from "../../../services/session/rpc/session/put-payload.ts";
import { databaseUnavailable } from "../../../services/session/store/pg-error.ts";

const CONTENT = Buffer.from("content");
const sha256 = createHash("sha256").update(CONTENT).digest();

/** A store whose finish fails with that; says which uploads it was told to discard. */
function storeThat(failure: Error): { payloads: PayloadStore; discarded: string[] } {
  const discarded: string[] = [];
  const payloads = {
    begin: async () => ({ workspaceId: "wrkspc_default", uploadId: "payl_1" }),
    addPiece: async () => {},
    finish: () => Promise.reject(failure),
    discard: async ({ uploadId }: { uploadId: string }) => void discarded.push(uploadId),
  } as unknown as PayloadStore;
  return { payloads, discarded };
}

async function put(payloads: PayloadStore): Promise<void> {
  const facts = { payloadId: "p", sizeBytes: BigInt(CONTENT.length), sha256, contentType: "text/plain" };
  const messages = async function* (): AsyncGenerator<PutPayloadRequest> {
    yield { message: { $case: "header", value: { sessionId: "sesn_1", ...facts, epoch: undefined } } };
    yield { message: { $case: "data", value: CONTENT } };
  };
  const principal = { role: Role.ROLE_OPERATOR, spiffeId: "", instance: "", workspaceId: null, keyId: null };
  const ctx = { principal, signal: new AbortController().signal, note: () => {} } as unknown as CallContext;
  await putPayload({ payloads }).run(messages(), ctx);
}

describe("an upload whose end fails", () => {
  it("is discarded when the store refused it", async () => {
    const refusal = payloadMismatch("p", "not all of it");
    const { payloads, discarded } = storeThat(refusal);
    await assert.rejects(put(payloads), refusal);
    assert.deepEqual(discarded, ["payl_1"]);
  });

  it("keeps its content when nobody knows whether it became a payload", async () => {
    const lost = databaseUnavailable("no answer");
    const { payloads, discarded } = storeThat(lost);
    await assert.rejects(put(payloads), lost);
    assert.deepEqual(discarded, []);
  });
});
