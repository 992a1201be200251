import { readdirSync, readFileSync } from "node:fs";
import { pointName, SERVICES, type ServiceName } from "./point-name.ts";
import { type Source, statementNames } from "./statement-names.ts";

type Methods = Record<string, { path: string }>;
/** How the points of one call of crashPoint are made from the code of a service. */
type Expand = (service: ServiceName, sources: readonly Source[]) => string[] | Promise<string[]>;

const ROOT = new URL("../../../services/", import.meta.url);

// A call with words that are not literal is a choke point: here stands where its names come from. One that is missing
// here fails the list, so that no new choke point can be forgotten either.
const CHOKE_POINTS: Record<string, Expand> = {
  'crashPoint("pg", statement.name, "before")': (service, sources) =>
    statementNames(sources).map((name) => pointName(service, "pg", name, "before")),
  'crashPoint("pg", statement.name, "after")': (service, sources) =>
    statementNames(sources).map((name) => pointName(service, "pg", name, "after")),
  'crashPoint("hand.receive", frame.type)': (service, sources) =>
    framesFromHand(sources).map((type) => pointName(service, "hand.receive", type)),
  'crashPoint("send", method.path)': (service, sources) => calls(service, sources, "send"),
  'crashPoint("send", path)': () => [],
  'crashPoint("receive", method.path)': (service, sources) => calls(service, sources, "receive"),
  'crashPoint("receive", path)': () => [],
  'crashPoint("serve", method.path, "received")': (service, sources) => served(service, sources, "received"),
  'crashPoint("serve", method.path, "answering")': (service, sources) =>
    served(service, sources, "answering"),
};

/** listPoints reads from the code every point that a process of the four services can come by. */
export async function listPoints(): Promise<string[]> {
  const common = sourcesBelow("common");
  const points = new Set<string>();
  for (const service of SERVICES) {
    const sources = sourcesBelow(service);
    const calls = [...common, ...sources].flatMap(({ name, text }) =>
      [...text.matchAll(/crashPoint\([^;]*?\);/g)].map(([call]) => ({ name, call: call.slice(0, -1) })),
    );
    for (const { name, call } of calls) {
      const literal = /^crashPoint\("([a-z.-]+)"\)$/.exec(call)?.[1];
      const expand = CHOKE_POINTS[call];
      if (literal !== undefined) points.add(pointName(service, literal));
      else if (!expand) throw new Error(`${name}: nobody knows the names of ${call}`);
      else for (const point of await expand(service, sources)) points.add(point);
    }
  }
  return [...points].sort();
}

function sourcesBelow(folder: string): Source[] {
  const home = new URL(`${folder}/`, ROOT);
  return readdirSync(home, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && name !== "crash/crash-point.ts")
    .map((name) => ({ name: `${folder}/${name}`, text: readFileSync(new URL(name, home), "utf8") }));
}

function framesFromHand(sources: readonly Source[]): string[] {
  const protocol = sources.find(({ name }) => name.endsWith("/hand-agent/protocol.ts"))?.text ?? "";
  const union = protocol.slice(protocol.indexOf("type FromAgent ="));
  return [...union.matchAll(/type: "([a-z]+)"/g)].map(([, type]) => type as string);
}

/** Methods that a service calls at others: everything that is dialled lies in clients/ or main.ts. */
async function calls(service: ServiceName, sources: readonly Source[], kind: string): Promise<string[]> {
  const dialling = sources.filter(({ text }) => text.includes("grpc/create-client.ts"));
  const outside = dialling.find(({ name }) => !/^[^/]+\/(clients\/.*|main\.ts)$/.test(name));
  if (outside) throw new Error(`${outside.name} dials, and only clients/ and main.ts may`);
  const texts = sources
    .filter(({ name }) => /^[^/]+\/(clients\/|main\.ts$)/.test(name))
    .map(({ text }) => text);
  const made = dialling.flatMap(({ text }) =>
    [...text.matchAll(/createClient\((\w+Service)Service\b/g)].map(([, name]) => name as string),
  );
  const points: string[] = [];
  for (const name of new Set(made)) {
    for (const [method, { path }] of Object.entries(await methodsOf(name, sources))) {
      const isCalled = texts.some((text) => new RegExp(`\\.${method}\\(`).test(text));
      if (isCalled) points.push(pointName(service, kind, path));
    }
  }
  return points;
}

/** Methods that a service serves, health beside its own. */
async function served(service: ServiceName, sources: readonly Source[], moment: string): Promise<string[]> {
  const points = ["Check", "Watch", "List"].map((method) =>
    pointName(service, "serve", `Health.${method}`, moment),
  );
  const names = sources.flatMap(({ text }) =>
    [...text.matchAll(/\bimplement(?:Some)?\((\w+Service)Service,/g)].map(([, name]) => name as string),
  );
  if (names.length === 0) throw new Error(`${service} serves nothing`);
  for (const name of names) {
    for (const { path } of Object.values(await methodsOf(name, sources)))
      points.push(pointName(service, "serve", path, moment));
  }
  return points;
}

async function methodsOf(name: string, sources: readonly Source[]): Promise<Methods> {
  const imported = new RegExp(`\\b${name}Service\\b[^;]*?from "(?:\\.\\./)+(gen/[^"]+)"`, "s");
  const file = sources.map(({ text }) => imported.exec(text)?.[1]).find((found) => found !== undefined);
  if (!file) throw new Error(`nobody imports ${name}`);
  const module = (await import(new URL(file, ROOT).href)) as Record<string, Methods>;
  return module[`${name}Service`] as Methods;
}
