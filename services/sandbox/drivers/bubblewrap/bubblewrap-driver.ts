import { execFile } from "node:child_process";
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  rmdirSync,
  rmSync,
  statSync,
} from "node:fs";
import { userInfo } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { crashPoint } from "../../../common/crash/crash-point.ts";
import {
  type DrivenHand,
  type DriverCapabilities,
  DriverUnavailableError,
  type HandDriver,
  type HandResources,
} from "../../domain/hand-driver.ts";
import type { OpenDoor, WayOut } from "../../domain/way-out.ts";
import type { OutsideConfig } from "../../hand-agent/protocol.ts";
import { BubblewrapHand } from "./bubblewrap-hand.ts";
import { Cgroups } from "./cgroups.ts";
import { installAgent, installEtc } from "./install-parts.ts";
import { Jail } from "./jail.ts";
import { asUser, type HandIdentity } from "./launch-command.ts";
import { outsideEnvironment, readRoots, writeOutsideFiles } from "./outside-files.ts";
import { buildSeccompFilter } from "./seccomp-filter.ts";
import { findSubIds } from "./sub-ids.ts";
import { type UidSlot, UidSlots } from "./uid-slots.ts";

const run = promisify(execFile);
const REMOVE_SCRIPT = 'chmod -R u+rwX -- "$1" 2>/dev/null; rm -rf -- "$1"/* "$1"/.[!.]* "$1"/..?*';
// In a hand's folder, beside its work folder. Open while the jail is made; from then on the hand has what is inside by its
// mount, and nobody by its path.
const DOOR = "door";
// Inside of that: the hand's socket, and files of the service, which the hand reads.
const OUTSIDE = join(DOOR, "outside");
const PROBE_RESOURCES = { memoryBytes: 1 << 30, cpuMillis: 1000, maxProcesses: 64, diskBytes: 1 << 30 };

/** Where the driver works. */
export type BubblewrapOptions = {
  /** Folder of its own on the host; hands' users must be able to pass through it. */
  folder: string;
  nodeBinary: string;
  /** Control groups given to the service; empty = none. */
  cgroupFolders: readonly string[];
  /** Make no hands at all rather than hands that share the service's user id. */
  requireOwnIds: boolean;
};

/** BubblewrapDriver makes a hand from Linux namespaces, a system call filter and a user id of its own. */
export class BubblewrapDriver implements HandDriver {
  readonly name = "bubblewrap";
  readonly tools = ["bash", "read", "write", "edit", "glob", "grep"] as const;
  readonly #options: BubblewrapOptions;
  readonly #handsFolder: string;
  #slots: UidSlots | undefined;
  #cgroups: Cgroups | undefined;
  #seccomp: Buffer = Buffer.alloc(0);
  #started: Promise<void> | undefined;
  #sharedReason = "";
  #roots = "";

  constructor(options: BubblewrapOptions) {
    this.#options = options;
    this.#handsFolder = join(options.folder, "hands");
  }

  start(): Promise<void> {
    // What was missing may be installed while the service runs: a failed start is tried again.
    this.#started ??= this.#startNow().catch((error) => {
      this.#started = undefined;
      throw error;
    });
    return this.#started;
  }

  async #startNow(): Promise<void> {
    checkHost(this.#options.nodeBinary);
    this.#seccomp = buildSeccompFilter();
    for (const folder of [this.#options.folder, this.#handsFolder]) {
      mkdirSync(folder, { recursive: true });
      // Others may pass through, not look: the names of the hands' folders cannot be guessed.
      chmodSync(folder, 0o711);
    }
    installAgent(join(this.#options.folder, "agent"));
    installEtc(join(this.#options.folder, "etc"));
    this.#roots = readRoots();
    this.#cgroups =
      this.#options.cgroupFolders.length > 0 ? new Cgroups(this.#options.cgroupFolders) : undefined;
    await this.#reap();
    await this.#chooseIds();
  }

  capabilities(): DriverCapabilities {
    const enforced = this.#cgroups?.enforced;
    const unenforcedLimits = ["disk"];
    if (!enforced?.has("cpu")) unenforcedLimits.unshift("cpu");
    if (!enforced?.has("memory")) unenforcedLimits.unshift("memory");
    const sharedUidReason = this.#slots ? "" : this.#sharedReason;
    return {
      perHandUid: this.#slots !== undefined,
      sharedUidReason,
      cgroups: this.#cgroups !== undefined,
      unenforcedLimits,
    };
  }

  async provision(handId: string, resources: HandResources, wayOut?: WayOut): Promise<DrivenHand> {
    await this.start();
    return this.#make(handId, resources, wayOut);
  }

  async #make(handId: string, resources: HandResources, wayOut?: WayOut): Promise<DrivenHand> {
    const slot = this.#slots ? await this.#slots.take() : undefined;
    if (this.#slots && !slot) throw new Error("no free user id for another hand");
    const folder = join(this.#handsFolder, handId);
    const group = this.#cgroups?.create(handId, resources);
    let door: OpenDoor | undefined;
    const cleanUp = async () => {
      await door?.close();
      await removeHandFolder(folder, slot);
      await group?.remove();
      await slot?.release();
    };
    try {
      crashPoint("hand.make.before");
      mkdirSync(folder, { mode: 0o700 });
      // Open only until the hand's user has made its work folder in it.
      if (slot) chmodSync(folder, 0o733);
      door = wayOut && (await openDoor(folder, wayOut, this.#roots));
      return await this.#launch(folder, slot, group?.joinFiles ?? [], resources, cleanUp, wayOut);
    } catch (error) {
      await cleanUp();
      throw error;
    }
  }

  async #launch(
    folder: string,
    slot: UidSlot | undefined,
    joinFiles: readonly string[],
    resources: HandResources,
    cleanUp: () => Promise<void>,
    wayOut: WayOut | undefined,
  ): Promise<DrivenHand> {
    const jail = await Jail.start({
      parts: {
        nodeBinary: this.#options.nodeBinary,
        agentFolder: join(this.#options.folder, "agent"),
        etcFolder: join(this.#options.folder, "etc"),
        workFolder: join(folder, "work"),
        ...(wayOut && { outsideFolder: join(folder, OUTSIDE) }),
      },
      identity: slot,
      joinFiles,
      resources,
      seccomp: this.#seccomp,
    });
    chmodSync(folder, slot ? 0o711 : 0o700);
    const hand = new BubblewrapHand(jail, cleanUp);
    try {
      await hand.ready(wayOut && agentConfig(wayOut));
    } catch (error) {
      await jail.kill();
      throw error;
    }
    // The agent runs, so the jail's mounts are made.
    if (wayOut) chmodSync(join(folder, DOOR), 0o700);
    crashPoint("hand.make.after");
    return hand;
  }

  /** Jails die with the service that made them; their folders and groups do not (case B070). */
  async #reap(): Promise<void> {
    for (const name of readdirSync(this.#handsFolder)) {
      const folder = join(this.#handsFolder, name);
      const owner = statSync(join(folder, "work"), { throwIfNoEntry: false });
      const isOurs = !owner || owner.uid === process.getuid?.();
      await removeHandFolder(folder, isOurs ? undefined : { uid: owner.uid, gid: owner.gid });
    }
    await this.#cgroups?.removeLeftovers();
  }

  /**
   * A user id of its own for each hand where that works. Where it does not, hands share the service's id, and
   * capabilities say so; a service that was told to require ids of their own makes no hands instead.
   */
  async #chooseIds(): Promise<void> {
    const { username, uid } = userInfo();
    const ids = findSubIds({ name: username, uid });
    const canMap = existsSync("/usr/bin/newuidmap") && existsSync("/usr/bin/newgidmap");
    this.#sharedReason = "the service's user has no subordinate ids, or newuidmap is missing";
    if (ids && canMap) {
      this.#slots = new UidSlots(ids);
      try {
        return await this.#probe();
      } catch (error) {
        // For example: the data folder lies below one that only its owner may enter.
        this.#sharedReason = (error as Error).message;
        this.#slots = undefined;
      }
    }
    if (this.#options.requireOwnIds) {
      throw new DriverUnavailableError(
        "subordinate ids",
        `no hand gets an id of its own: ${this.#sharedReason}`,
      );
    }
    await this.#probe();
  }

  /** Makes a hand and throws it away: what is wrong with this host shows now, not at the first tool call. */
  async #probe(): Promise<void> {
    try {
      const hand = await this.#make("probe", PROBE_RESOURCES);
      await hand.destroy();
    } catch (error) {
      throw new DriverUnavailableError(
        "bubblewrap",
        `no hand can be made on this host: ${(error as Error).message}`,
      );
    }
  }
}

function checkHost(nodeBinary: string): void {
  for (const path of ["/usr/bin/bwrap", "/usr/bin/unshare", "/usr/bin/prlimit", "/bin/bash", nodeBinary]) {
    try {
      accessSync(path, constants.X_OK);
    } catch {
      throw new DriverUnavailableError(path.split("/").at(-1)!, `${path} cannot be run; install it`);
    }
  }
  accessSync(dirname(nodeBinary), constants.X_OK);
}

/** Makes what a hand with a way out is shown: its socket, and the files that go with it. */
async function openDoor(folder: string, wayOut: WayOut, roots: string): Promise<OpenDoor> {
  mkdirSync(join(folder, DOOR));
  chmodSync(join(folder, DOOR), 0o711);
  writeOutsideFiles(join(folder, OUTSIDE), wayOut.setup, roots);
  return wayOut.open(join(folder, OUTSIDE));
}

function agentConfig({ setup, maxConnections }: WayOut): OutsideConfig {
  return { environment: outsideEnvironment(setup), maxConnections };
}

/** Removes a hand's files under the hand's own id: they are whatever the model made of them. */
async function removeHandFolder(folder: string, identity: HandIdentity | undefined): Promise<void> {
  const work = join(folder, "work");
  if (existsSync(work)) {
    const command = ["/bin/sh", "-c", REMOVE_SCRIPT, "sh", work];
    const [program, ...args] = identity ? [...asUser(identity), ...command] : command;
    await run(program!, args, { env: {}, cwd: "/" });
    rmdirSync(work);
  }
  rmSync(join(folder, DOOR), { recursive: true, force: true });
  if (existsSync(folder)) rmdirSync(folder);
}
