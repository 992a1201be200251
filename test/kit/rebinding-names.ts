// Loaded into a service by its test, before its main file: `node --import test/kit/rebinding-names.ts …`, with REBINDING_NAMES as
// JSON {"name": ["first address", "every later one"]}. Such a name is answered so to whoever asks in the process, the
// runtime's own connect() included; each answer is a line on standard output. All other names are what they are.
import dns, { type LookupAddress } from "node:dns";
import promises from "node:dns/promises";
import { syncBuiltinESMExports } from "node:module";

type Callback = (error: Error | null, address?: string | LookupAddress[], family?: number) => void;

const names = JSON.parse(process.env.REBINDING_NAMES ?? "{}") as Record<string, [string, string]>;
delete process.env.REBINDING_NAMES;
const asked = new Set<string>();

const answerFor = (host: string): LookupAddress | undefined => {
  const answers = names[host];
  if (!answers) return undefined;
  const address = answers[asked.has(host) ? 1 : 0];
  asked.add(host);
  console.log(JSON.stringify({ rebinding: host, answer: address }));
  return { address, family: 4 };
};

const { lookup } = dns;
const lookupPromised = promises.lookup;
Object.assign(promises, {
  lookup: async (host: string, options?: { all?: boolean }) => {
    const answer = answerFor(host);
    if (!answer) return lookupPromised(host, options as object);
    return options?.all ? [answer] : answer;
  },
});
Object.assign(dns, {
  lookup: (host: string, ...rest: [object | Callback, Callback?]) => {
    const callback = rest.at(-1) as Callback;
    const options = rest.length > 1 ? (rest[0] as { all?: boolean }) : {};
    const answer = answerFor(host);
    if (!answer) return (lookup as (...args: unknown[]) => void)(host, ...rest);
    process.nextTick(() =>
      options.all ? callback(null, [answer]) : callback(null, answer.address, answer.family),
    );
  },
});
syncBuiltinESMExports();
