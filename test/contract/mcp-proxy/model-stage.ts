import { startScriptedModel, type TestModel } from "../../kit/scripted-model.ts";
import { ProxyKit } from "./proxy-kit.ts";

/** The model that a test's sessions may call. */
export const MODEL = "claude-test";

/** Headers of every request. */
export const PLAIN = { "content-type": "application/json", "anthropic-version": "2023-06-01" };

/** A request that the scripted model answers at once. */
export const HELLO = {
  model: MODEL,
  max_tokens: 50,
  messages: [{ role: "user", content: "scenario: plain words=3" }],
};

/** How a request differs from a harness's ordinary one. */
export interface PostOptions {
  path?: string;
  method?: string;
  headers?: Record<string, string>;
  harness?: string;
  service?: string;
}

/** A proxy, and the scripted model behind its model door. */
export class ModelStage {
  readonly kit: ProxyKit;
  readonly model: TestModel;

  private constructor(kit: ProxyKit, model: TestModel) {
    this.kit = kit;
    this.model = model;
  }

  static async start(): Promise<ModelStage> {
    const model = await startScriptedModel();
    const kit = await ProxyKit.start({ GANGLION_SCRIPTED_MODEL_URL: model.url });
    await kit.storeModelKey(model.url, model.apiKey);
    return new ModelStage(kit, model);
  }

  /** Asks at the door. */
  async post(token: string | undefined, body: unknown, more: PostOptions = {}) {
    const { fetch } = await this.kit.door(more.harness, more.service);
    const init: RequestInit = {
      method: more.method ?? "POST",
      headers: {
        ...PLAIN,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...more.headers,
      },
    };
    if (init.method === "POST") init.body = typeof body === "string" ? body : JSON.stringify(body);
    const answer = await fetch(`https://${this.kit.doorAddress()}${more.path ?? "/v1/messages"}`, init);
    return { status: answer.status, headers: answer.headers, text: await answer.text() };
  }

  async stop(): Promise<void> {
    await this.kit.stop();
    await this.model.stop();
  }
}
