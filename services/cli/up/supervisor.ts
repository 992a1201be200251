import { EventEmitter, once } from "node:events";
import { choosePorts } from "./choose-ports.ts";
import { rotateLogs } from "./log-files.ts";
import { MeshCertificates } from "./mesh-certificates.ts";
import { type MeshFiles, type MeshRecord, makeFolder, meshFiles, readMesh, writeMesh } from "./mesh-files.ts";
import { certificateHolders } from "./mesh-holders.ts";
import { MeshParts } from "./mesh-parts.ts";
import { portNames, servicesOf } from "./mesh-services.ts";
import { endProcess, recordOf } from "./process-record.ts";
import { checkReach } from "./service-specs.ts";
import { prepareUsers } from "./service-users.ts";
import type { StartLine, SupervisorOptions } from "./supervisor-options.ts";

const LEFTOVER_GRACE_MS = 5000;
const UPKEEP_MS = 60_000;

/** Supervisor starts the parts of a mesh, keeps them and their certificates alive, and stops them. */
export class Supervisor extends EventEmitter<{ stopped: [] }> {
  readonly files: MeshFiles;
  readonly #options: SupervisorOptions;
  #record: MeshRecord;
  #parts: MeshParts | undefined;
  #renew: (() => Promise<void>) | undefined;
  #upkeep: NodeJS.Timeout | undefined;
  #stopping: Promise<void> | undefined;

  constructor(options: SupervisorOptions) {
    super();
    this.#options = options;
    this.files = meshFiles(options.state);
    this.#record = readMesh(this.files);
  }

  /** Starts everything; rejects, with everything stopped again, when a part does not come up. */
  async start(say: (line: StartLine) => void): Promise<void> {
    const begun = Date.now();
    try {
      await this.#start(say);
    } catch (error) {
      await this.stop();
      throw error;
    }
    say({ ready: true, ms: Date.now() - begun, scriptedModel: this.#record.scriptedModel });
  }

  /** Stops everything that was started; the data stays. */
  stop(say: (step: string) => void = () => {}): Promise<void> {
    this.#stopping ??= this.#stop(say);
    return this.#stopping;
  }

  /** What runs, for `ganglion doctor`. */
  status(): Record<string, unknown> {
    return {
      supervisor: this.#record.supervisor,
      ports: this.#record.ports,
      scriptedModel: this.#record.scriptedModel,
      processes: this.#parts?.statuses() ?? [],
      hands: this.#parts?.hands() ?? {},
    };
  }

  /** Resolves when a part is ready, as another process than `notPid`. */
  async ready(part: string, notPid: number): Promise<void> {
    const parts = this.#parts;
    const isReady = () =>
      parts?.statuses().some((one) => one.name === part && one.state === "ready" && one.pid !== notPid);
    while (parts && !isReady()) await once(parts, "change");
  }

  /** Gives everybody a new certificate. */
  async renew(): Promise<void> {
    await this.#renew?.();
  }

  async #start(say: (line: StartLine) => void): Promise<void> {
    const options = this.#options;
    // Services pass through these folders to their own; names in them are no secret, contents are.
    for (const folder of [this.files.state, this.files.tls]) makeFolder(folder, 0o711);
    makeFolder(this.files.logs, 0o700);
    await this.#replaceLeftovers(say);
    const users = prepareUsers();
    checkReach(options.checkout, users.gateway);
    const wanted = { rest: options.restPort, grpc: options.grpcPort };
    const services = servicesOf(options.sessionReplicas);
    const ports = await choosePorts(portNames(services), this.#record.ports, wanted);
    this.#remember({ supervisor: recordOf(process.pid), ports, processes: {}, scriptedModel: false });

    const certificates = await MeshCertificates.open(this.files.tls);
    const holders = certificateHolders(users, services);
    await Promise.all(holders.map((holder) => certificates.ensure(holder)));
    const parts = new MeshParts({ options, services, files: this.files, users, ports, certificates });
    this.#parts = parts;
    parts.on("change", () =>
      this.#remember({ processes: parts.records(), scriptedModel: parts.scriptedModel }),
    );
    this.#renew = async () => {
      for (const holder of holders) await certificates.issue(holder);
      parts.certificatesChanged();
    };
    this.#upkeep = setInterval(() => {
      rotateLogs(this.files.logs);
      const renewals = holders.map((holder) => certificates.ensure(holder));
      Promise.all(renewals).then(
        (renewed) => renewed.some(Boolean) && parts.certificatesChanged(),
        (error: Error) => console.error(`certificates could not be renewed: ${error.message}`),
      );
    }, UPKEEP_MS);
    await parts.start(say);
  }

  async #stop(say: (step: string) => void): Promise<void> {
    clearInterval(this.#upkeep);
    await this.#parts?.stop(say);
    this.#remember({ processes: {} });
    delete this.#record.supervisor;
    writeMesh(this.files, this.#record);
    this.emit("stopped");
  }

  /** A supervisor that was killed leaves its processes running: they are named by pid and start time, and replaced. */
  async #replaceLeftovers(say: (line: StartLine) => void): Promise<void> {
    const { supervisor, processes } = this.#record;
    const left = [
      ...(supervisor && supervisor.pid !== process.pid ? [supervisor] : []),
      ...Object.values(processes),
    ];
    const running = left.filter((record) => recordOf(record.pid)?.startTime === record.startTime);
    if (running.length === 0) return;
    const step = "processes of a supervisor that crashed";
    say({ step, state: "begun" });
    await Promise.all(running.map((record) => endProcess(record, LEFTOVER_GRACE_MS)));
    say({ step, state: "done", detail: `${running.length} replaced` });
  }

  #remember(change: Partial<MeshRecord>): void {
    this.#record = { ...this.#record, ...change };
    writeMesh(this.files, this.#record);
  }
}
