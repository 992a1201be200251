import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { TestCa } from "../../kit/ca.ts";
import { askFrom, HandKit, only, type TestHand } from "./hand-kit.ts";
import { past } from "./oauth-kit.ts";
import { ProxyKit } from "./proxy-kit.ts";
import { Recorder } from "./recorder.ts";

const NAMES = new URL("../../kit/rebinding-names.ts", import.meta.url).href;
/** What every name answers to whoever asks first. The operator lists the names, so an inside address may be judged well. */
const JUDGED = "127.0.0.2";
/** How long an answer is kept. */
const KEPT_MS = 10_000;

/** The ways out of a hand. */
const WAYS = {
  "plain http": { scheme: "http", isIntercepted: false },
  "a blind tunnel": { scheme: "https", isIntercepted: false },
  "an intercepted CONNECT": { scheme: "https", isIntercepted: true },
} as const;
/** What names answer from the second time on. */
const LATER = { loopback: "127.0.0.1", metadata: "169.254.169.254" } as const;

const CASES = Object.entries(WAYS).flatMap(([way, how], i) =>
  Object.entries(LATER).map(([what, later]) => ({ way, ...how, later, name: `${what}-${i}.rebind.test` })),
);

describe("a name that means another address after it was judged, at the egress door", function () {
  this.timeout(90_000);
  let kit: ProxyKit;
  let hands: HandKit;
  let ca: TestCa;
  /** At the judged address, and at the one that a second resolution would find; by scheme, on the same port. */
  let judged: Record<"http" | "https", Recorder>;
  let traps: Record<"http" | "https", Recorder>;
  const secret = `sk-${randomBytes(18).toString("base64url")}`;
  const used = new Map<string, { hand: TestHand; at: number }>();

  before(async () => {
    ca = await TestCa.create();
    const dnsNames = CASES.map(({ name }) => name);
    // Both could show a certificate that is good for the names.
    traps = { http: await Recorder.start(), https: await Recorder.start(ca, { dnsNames }) };
    const beside = (port: number) => ({ host: JUDGED, port, dnsNames });
    judged = {
      http: await Recorder.start(undefined, beside(traps.http.port)),
      https: await Recorder.start(ca, beside(traps.https.port)),
    };
    for (const trap of Object.values(traps))
      trap.listener = (_request, response) => void response.end("trap");
    for (const one of Object.values(judged))
      one.listener = (_request, response) => void response.end("judged");
    const caFile = join(ca.root, "upstream.pem");
    writeFileSync(caFile, ca.authority.certPem);
    const answers = Object.fromEntries(CASES.map(({ name, later }) => [name, [JUDGED, later]]));
    const env = {
      REBINDING_NAMES: JSON.stringify(answers),
      GANGLION_PROXY_ALLOW_HTTP_HOSTS: dnsNames.join(","),
      GANGLION_UPSTREAM_CA_FILE: caFile,
    };
    kit = await ProxyKit.start(env, { preload: NAMES });
    hands = new HandKit(kit);
  });
  after(async () => {
    hands?.stop();
    await kit?.stop();
    for (const one of [judged, traps].flatMap((both) => Object.values(both ?? {}))) one.stop();
    ca?.remove();
  });

  /** Answers that the process got for a name, in order. */
  const answers = (name: string) =>
    kit.service.lines().flatMap((line) => (line.rebinding === name ? [line.answer] : []));
  const trapped = () => Object.values(traps).reduce((sum, { connections }) => sum + connections, 0);

  for (const { way, scheme, isIntercepted, later, name } of CASES) {
    it(`${way} goes to the address that was judged and never to ${later}: one resolution, and its dispatch says which [A033]`, async () => {
      const variables = isIntercepted ? [{ name: "KEY", secret, hosts: [name] }] : [];
      const hand = await hands.hand({ networking: only(name), variables });
      const url = `${scheme}://${name}:${judged[scheme].port}/x`;
      used.set(name, { hand, at: Date.now() });
      const headers: Record<string, string> = isIntercepted ? { "x-key": hand.placeholder("KEY") } : {};
      const before = judged[scheme].seen.length;
      for (let times = 0; times < 2; times += 1) {
        const answer = await askFrom(hand, url, { headers });
        assert.deepEqual([answer.status, answer.body.toString()], [200, "judged"]);
      }
      assert.equal(judged[scheme].seen.length, before + 2);
      const sent = judged[scheme].seen.at(-1)?.headers["x-key"];
      assert.equal(sent, isIntercepted ? secret : undefined);
      assert.equal(trapped(), 0);
      assert.deepEqual(answers(name), [JUDGED]);
      const dispatched = (await kit.records(hand.sessionId)).filter(({ kind }) => kind === 2);
      assert.deepEqual(
        dispatched.map(({ peerAddress }) => peerAddress),
        [JUDGED, JUDGED],
      );
    });
  }

  it("once the answer that was judged is old, a request is judged by the new one: metadata is denied, whoever lists the name [A033] [B108]", async () => {
    const cases = CASES.filter(({ later }) => later === LATER.metadata);
    await past(Math.max(...[...used.values()].map(({ at }) => at)) + KEPT_MS + 1000);
    const seen = () => Object.values(judged).reduce((sum, one) => sum + one.connections, 0);
    const before = seen();
    for (const { scheme, name, way } of cases) {
      const { hand } = used.get(name) as { hand: TestHand };
      const since = (await kit.records(hand.sessionId)).length;
      const url = `${scheme}://${name}:${judged[scheme].port}/x`;
      const answer = await askFrom(hand, url);
      assert.deepEqual([answer.status, answer.reason], [403, "DEST_NOT_ALLOWED"], way);
      assert.deepEqual(answers(name), [JUDGED, LATER.metadata]);
      const records = (await kit.records(hand.sessionId)).slice(since).filter(({ kind }) => kind < 3);
      assert.deepEqual(
        records.map(({ effect, reason }) => [effect, reason]),
        [["deny", "DEST_NOT_ALLOWED"]],
      );
    }
    assert.deepEqual([seen(), trapped()], [before, 0]);
  });
});
