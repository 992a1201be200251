import assert from "node:assert/strict";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TestCa } from "../../kit/ca.ts";
import { HandKit, type TestHand } from "./hand-kit.ts";
import { briefly, ProxyKit } from "./proxy-kit.ts";
import { Recorder } from "./recorder.ts";

/** EgressStage is a proxy with hands before it and three upstreams behind it, which note what comes. */
export class EgressStage {
  readonly kit: ProxyKit;
  readonly hands: HandKit;
  /** http on a listed host. */
  readonly plain: Recorder;
  /** https on a listed host. */
  readonly api: Recorder;
  /** https on a host that is not listed. */
  readonly unlisted: Recorder;
  readonly #ca: TestCa;

  private constructor(kit: ProxyKit, recorders: readonly [Recorder, Recorder, Recorder], ca: TestCa) {
    this.kit = kit;
    this.hands = new HandKit(kit);
    [this.plain, this.api, this.unlisted] = recorders;
    this.#ca = ca;
  }

  /** Starts it, under the shipped policy unless another is given; then with an audit folder, too. */
  static async start(policy?: string): Promise<EgressStage> {
    const ca = await TestCa.create();
    const recorders = await Promise.all([Recorder.start(), Recorder.start(ca), Recorder.start(ca)]);
    const [plain, api] = recorders;
    const caFile = join(ca.root, "upstream.pem");
    writeFileSync(caFile, ca.authority.certPem);
    const listed = [plain.port, api.port].flatMap((port) => [`localhost:${port}`, `127.0.0.1:${port}`]);
    const kit = await ProxyKit.start({
      GANGLION_PROXY_ALLOW_HTTP_HOSTS: listed.join(","),
      GANGLION_UPSTREAM_CA_FILE: caFile,
      ...(policy === undefined ? {} : withPolicy(ca, policy)),
    });
    return new EgressStage(kit, recorders, ca);
  }

  /** Folder of the proxy's audit log beside the database. */
  get auditFolder(): string {
    return join(this.#ca.root, "audit");
  }

  /** Puts another policy in the place of the one that was given at the start. */
  putPolicy(policy: string): void {
    putPolicy(this.#ca, policy);
  }

  async stop(): Promise<void> {
    this.hands.stop();
    await this.kit.stop();
    for (const recorder of this.#recorders) recorder.stop();
    this.#ca.remove();
  }

  /** Forgets what the upstreams saw, and has them say hello again. */
  reset(): void {
    for (const recorder of this.#recorders) {
      recorder.seen.length = 0;
      recorder.connections = 0;
      recorder.listener = (_request, response) => void response.end("hello");
    }
  }

  /** Connections that reached an upstream. */
  get forwarded(): number {
    return this.#recorders.reduce((sum, { connections }) => sum + connections, 0);
  }

  /** URL at the upstream that speaks plain http. */
  http(path = "/x"): string {
    return `http://localhost:${this.plain.port}${path}`;
  }

  /** URL at the listed upstream that speaks TLS. */
  https(path = "/x"): string {
    return `https://localhost:${this.api.port}${path}`;
  }

  /** The records about a hand's requests, in a few words each. */
  async rows({ sessionId }: TestHand): Promise<string[]> {
    const records = briefly(await this.kit.records(sessionId));
    return records.filter((row) => /^(decision|dispatch|outcome)/.test(row));
  }

  /** Asserts that the hand is refused for that reason, that it is written down, and that nothing was forwarded. */
  async assertRefused(
    hand: TestHand,
    reason: string,
    work: () => Promise<{ reason: string | undefined }>,
  ): Promise<void> {
    const before = this.forwarded;
    const { reason: told } = await work();
    assert.equal(told, reason);
    assert.equal(this.forwarded, before, "something was forwarded");
    assert.deepEqual(await this.rows(hand), [`decision deny ${reason}`]);
  }

  get #recorders(): readonly Recorder[] {
    return [this.plain, this.api, this.unlisted];
  }
}

function withPolicy(ca: TestCa, policy: string): Record<string, string> {
  const folder = join(ca.root, "audit");
  mkdirSync(folder);
  return { GANGLION_AUDIT_DIR: folder, GANGLION_POLICY_FILE: putPolicy(ca, policy) };
}

function putPolicy(ca: TestCa, policy: string): string {
  const file = join(ca.root, "policy.yaml");
  writeFileSync(`${file}.new`, policy);
  renameSync(`${file}.new`, file);
  return file;
}
