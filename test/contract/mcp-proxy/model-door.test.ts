import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { startScriptedModel, type TestModel } from "../../kit/scripted-model.ts";
import { type BoundSession, briefly, ProxyKit } from "./proxy-kit.ts";

const MODEL = "claude-test";

describe("the model door", () => {
  let kit: ProxyKit;
  let model: TestModel;

  before(async function () {
    this.timeout(60_000);
    model = await startScriptedModel();
    kit = await ProxyKit.start({ GANGLION_SCRIPTED_MODEL_URL: model.url });
    await kit.storeModelKey(model.url, model.apiKey);
  });

  after(async () => {
    await kit?.stop();
    await model?.stop();
  });

  const sdk = async (session: BoundSession) =>
    new Anthropic({
      baseURL: `https://${kit.doorAddress()}`,
      apiKey: null,
      authToken: session.token,
      fetch: (await kit.door()).fetch,
      maxRetries: 0,
    });

  it("streams through the official SDK and writes one record of each kind", async () => {
    const session = await kit.bound({ models: [MODEL] });
    const client = await sdk(session);
    const stream = client.messages.stream({
      model: MODEL,
      max_tokens: 100,
      messages: [{ role: "user", content: "scenario: plain words=5\nhello" }],
    });
    const message = await stream.finalMessage();
    assert.equal(message.role, "assistant");
    const records = await kit.records(session.sessionId);
    assert.deepEqual(briefly(records), ["decision allow", "dispatch", "outcome ok"]);
    const [decision, dispatch, outcome] = records;
    assert.equal(new Set(records.map(({ requestId }) => requestId)).size, 1);
    assert.equal(decision?.operation, "model");
    assert.equal(decision?.tokenId, session.tokenId);
    assert.equal(dispatch?.peerAddress, "127.0.0.1");
    assert.ok(dispatch?.vaultRequestId);
    assert.equal(dispatch?.credentialVersion, 1n);
    assert.equal(outcome?.status, 200);
    assert.ok((outcome?.responseBytes ?? 0n) > 0n);
  });
});
