import type { Harness } from "../../../../services/harness/driver/harness.ts";
import { createRowMac } from "../../../../services/mcp-proxy/domain/row-mac.ts";
import { Random } from "../../../kit/random.ts";
import { Network } from "../core/network.ts";
import { Trace } from "../core/trace.ts";
import { currentProcess, SimProcess, VirtualTime } from "../core/virtual-time.ts";
import { type BrainRules, bootBrain } from "./brain.ts";
import { Effects } from "./effects.ts";
import type { Mutation } from "./mutations.ts";
import { newSession, STRATEGIES } from "./new-session.ts";
import { Observer } from "./observer.ts";
import { bootProxy } from "./proxy-host.ts";
import { ProxyTables } from "./proxy-tables.ts";
import { bootSandbox, type SandboxHost } from "./sandbox-host.ts";
import { ScriptedMind } from "./scripted-mind.ts";
import { bootSession } from "./session-host.ts";
import { SimDatabase } from "./sim-database.ts";
import { SimDisk } from "./sim-journal.ts";
import { User } from "./user.ts";
import { draw, type Plan } from "./weather-plan.ts";

/** A part that can be killed, paused and booted again. */
export interface Part {
  readonly name: string;
  process: SimProcess;
  boot: () => void;
}

/** One brain. */
export interface BrainPart extends Part {
  harness: Harness;
}

/** The whole simulated mesh of one run. */
export class World {
  readonly random: Random;
  readonly plan: Plan;
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly network: Network;
  readonly database: SimDatabase;
  readonly tables: ProxyTables;
  readonly effects = new Effects();
  readonly mind: ScriptedMind;
  readonly outside: SimProcess;
  readonly brains: BrainPart[] = [];
  readonly sandboxes: (Part & { host: SandboxHost })[] = [];
  readonly servers: Part[] = [];
  readonly users: User[] = [];
  readonly observers: Observer[] = [];
  readonly journalRules = { remembersKeys: true, isDurable: true };
  readonly brainRules: BrainRules = { looksUp: true };

  constructor(seed: number, mutation?: Mutation) {
    this.random = new Random(seed, "world");
    this.plan = draw(new Random(seed, "plan"));
    this.time = new VirtualTime(seed);
    this.trace = new Trace(() => this.time.now);
    this.network = new Network(this.time, this.trace, new Random(seed, "network"));
    this.database = new SimDatabase(this.time, new Random(seed, "database"));
    this.tables = new ProxyTables(this.database);
    this.mind = new ScriptedMind(new Random(seed, "mind"));
    this.outside = new SimProcess(this.time, "outside");
    if (mutation) this.#mutate(mutation);
    this.database.listeners.push((row, from) => {
      for (const { row: event } of row.events.slice(from)) {
        const { position, type, event_id: id, epoch } = event;
        this.trace.say(`log ${row.sessionId} ${position} ${type} ${id} epoch ${epoch}`);
      }
    });
    Object.assign(this.mind.mood, this.plan.mood);
    Object.assign(this.network.weather, this.plan.weather);
    this.#build(seed);
  }

  #build(seed: number): void {
    const { network, time, database, plan, effects, tables, mind, outside, trace } = this;
    const mac = createRowMac(Buffer.alloc(32, 7));
    const replicas = Array.from({ length: plan.replicas }, (_, i) => `session-${i + 1}`);
    network.share("session", replicas);
    for (const name of replicas) {
      const listen = (process: SimProcess) =>
        network.listen(name, bootSession(process, database, plan.ttlMs));
      this.servers.push(this.#part(name, listen));
    }
    this.servers.push(
      this.#part("proxy", (process) =>
        network.listen("proxy", bootProxy(process, { network, tables, effects, mac, outside, mind })),
      ),
    );
    for (let i = 1; i <= plan.sandboxes; i++) {
      const disk = new SimDisk(new Random(seed, `disk ${i}`));
      const rules = this.journalRules;
      const part = this.#part(`sandbox-${i}`, (process) => {
        disk.crash();
        if (!rules.isDurable) disk.records.length = 0;
        const host = bootSandbox(process, { network, disk, effects, rules });
        network.listen(process.name, host);
        Object.assign(part, { host });
      }) as Part & { host: SandboxHost };
      this.sandboxes.push(part);
    }
    for (let i = 1; i <= plan.brains; i++) {
      const sandbox = this.sandboxes[i % plan.sandboxes]!.name;
      const part = this.#part(`harness-${i}`, (process) => {
        Object.assign(part, { harness: bootBrain(process, network, sandbox, plan.times, this.brainRules) });
      }) as BrainPart;
      this.brains.push(part);
    }
    for (let i = 1; i <= plan.sessions; i++) {
      const strategy = this.random.pick(STRATEGIES);
      const sessionId = currentProcess.run(outside, () => newSession(database, tables, mac, strategy));
      const observer = new Observer(database, sessionId, strategy.showsAll);
      this.observers.push(observer);
      this.users.push(new User(new SimProcess(time, `user-${i}`), network, observer));
      trace.say(`user-${i} has ${sessionId} with ${strategy.name}`);
    }
    for (const part of [...this.servers, ...this.sandboxes, ...this.brains]) part.boot();
  }

  #part(name: string, start: (process: SimProcess) => void): Part {
    const skew = new Random(this.time.seed, `clock ${name}`);
    const clock = { skewMs: skew.between(-3_600_000, 3_600_000), rate: skew.pick([1, 1, 0.8, 1.25]) };
    const part: Part = {
      name,
      process: new SimProcess(this.time, name, clock),
      boot: () => {
        part.process.kill();
        part.process = new SimProcess(this.time, name, clock);
        this.trace.say(`boot ${name}`);
        start(part.process);
      },
    };
    return part;
  }

  #mutate(mutation: Mutation): void {
    const { rules } = this.database;
    switch (mutation) {
      case "storeForgetsEpoch":
        rules.checksEpoch = false;
        return;
      case "storeKeepsDuplicates":
        rules.checksDuplicates = false;
        return;
      case "storeLosesAppends":
        rules.isDurable = false;
        return;
      case "storeIgnoresExpectedPosition":
        rules.checksExpectedPosition = false;
        return;
      case "leasesAreGivenTwice":
        rules.respectsLeases = false;
        return;
      case "journalForgetsKeys":
        this.journalRules.remembersKeys = false;
        return;
      case "diskLosesRecords":
        this.journalRules.isDurable = false;
        return;
      case "proxyClaimsTwice":
        this.tables.rules.claimsOnce = false;
        return;
      case "brainSkipsLookUp":
        this.brainRules.looksUp = false;
    }
  }
}
