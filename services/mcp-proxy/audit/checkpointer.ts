import { BrokenChain, followChain, GENESIS, type Head } from "../domain/audit-chain.ts";
import { proxyError } from "../domain/proxy-error.ts";
import { type Checkpoint, isSigned, type NoteKey, signCheckpoint } from "../domain/signed-note.ts";
import type { CheckpointStore } from "./checkpoint-store.ts";
import type { NotesFile } from "./notes-file.ts";

/** Keys for checkpoints, the newest last. */
export interface SigningKeys {
  publicKeys(): NoteKey[];
  signer(): NoteKey;
  /** Looks for keys that another replica made meanwhile. */
  reload(): Promise<void>;
}

/** What signing needs. */
export interface CheckpointerDeps {
  store: CheckpointStore;
  keys: SigningKeys;
  notes: NotesFile | undefined;
  /** What is stored does not extend what was signed before; said once for each reason. */
  onRefused: (why: string) => void;
  onTrouble: (error: unknown) => void;
  now?: () => Date;
}

/** Makes checkpoints of the log. */
export interface Checkpointer {
  /** A record was written: every 256 there is a checkpoint. */
  written(sequence: bigint): void;
  /** Makes one that covers the record, unless there is one. */
  cover(sequence: bigint): Promise<Checkpoint>;
  /** Makes one that covers everything; undefined when the log is empty. */
  make(): Promise<Checkpoint | undefined>;
  close(): Promise<void>;
}

const EVERY = 256n;
/** Whatever is new is covered within a minute: looked for this often, when the last one is at least that old. */
const TICK_MS = 20_000;
const AGE_MS = 39_000;
const PAGE = 1000;
const TRIES = 5;

/** The stored log or its checkpoints do not extend what was signed before. */
class Refused extends Error {}

/** Starts making checkpoints, one at a time. */
export function startCheckpointer(deps: CheckpointerDeps): Checkpointer {
  const { store, keys, notes, onRefused, onTrouble, now = () => new Date() } = deps;
  /** The newest that this process, or its predecessor by the file, has seen. */
  let seen: Checkpoint | undefined;
  let covered = 0n;
  let refusal = "";
  let turn: Promise<unknown> = Promise.resolve();

  const check = async (newest: Checkpoint | undefined) => {
    seen ??= await notes?.last();
    if (seen) {
      if ((newest?.size ?? 0n) < seen.size) throw new Refused(`the checkpoint of size ${seen.size} is gone`);
      const same = newest?.size === seen.size ? newest : await store.covering(seen.size);
      if (same?.digest !== seen.digest)
        throw new Refused(`the checkpoint of size ${seen.size} is not the one that was signed`);
    }
    if (!newest) return;
    if (!isSigned(newest.note, keys.publicKeys())) await keys.reload();
    if (!isSigned(newest.note, keys.publicKeys()))
      throw new Refused(`nobody of us signed the checkpoint of size ${newest.size}`);
  };

  /** Reads the records up to a sequence and computes the chain from the last checkpoint on. */
  const follow = async (from: Head, to: bigint): Promise<Head> => {
    let head = from;
    while (head.sequence < to) {
      const lines = await store.lines(head.sequence, to, PAGE);
      if (lines.length === 0) throw new Refused(`record ${head.sequence + 1n} is missing`);
      head = followChain(lines, head);
    }
    return head;
  };

  const publish = async () => {
    if (!notes) return;
    const last = await notes.last();
    for (let after = last?.size ?? 0n; ; ) {
      const more = await store.list(after, PAGE);
      await notes.append(more);
      const end = more.at(-1);
      if (!end) return;
      after = end.size;
    }
  };

  const makeOne = async (wanted: bigint | undefined): Promise<Checkpoint | undefined> => {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const newest = await store.newest();
      await check(newest);
      const head = await store.head();
      const size = wanted ?? head.sequence;
      if (newest && newest.size >= size) return remember(await store.covering(size));
      if (size === 0n) return undefined;
      const from = { sequence: newest?.size ?? 0n, hash: newest?.headHash ?? GENESIS };
      const { hash } = await follow(from, size);
      const text = { logId: head.logId, size, headHash: hash, prev: newest?.digest ?? GENESIS, time: now() };
      const made = signCheckpoint(text, keys.signer());
      if (await store.add(made)) return remember(made);
    }
    throw new Error("other replicas came first again and again");
  };

  const remember = (checkpoint: Checkpoint | undefined) => {
    if (checkpoint && checkpoint.size > covered) covered = checkpoint.size;
    if (checkpoint && checkpoint.size > (seen?.size ?? 0n)) seen = checkpoint;
    return checkpoint;
  };

  const make = (wanted?: bigint): Promise<Checkpoint | undefined> => {
    const work = async () => {
      try {
        const made = await makeOne(wanted);
        // It is signed and stored; the file gets it as soon as it can.
        await publish().catch(onTrouble);
        refusal = "";
        return made;
      } catch (error) {
        if (!(error instanceof Refused || error instanceof BrokenChain)) throw error;
        if (refusal !== error.message) onRefused(error.message);
        refusal = error.message;
        throw proxyError("CHECKPOINT_REFUSED", { cause: error });
      }
    };
    const result = turn.then(work, work);
    turn = result.catch(() => {});
    return result;
  };
  const quietly = (wanted?: bigint) => void make(wanted).catch(onTrouble);

  const tick = async () => {
    const [newest, head] = await Promise.all([store.newest(), store.head()]);
    if (newest && newest.size > covered) covered = newest.size;
    const age = newest ? now().getTime() - newest.createdAt.getTime() : Number.POSITIVE_INFINITY;
    if (head.sequence > (newest?.size ?? 0n) && age > AGE_MS) await make();
    else if (notes) await publish();
  };
  const timer = setInterval(() => void tick().catch(onTrouble), TICK_MS);
  timer.unref();

  let asked = 0n;
  return {
    written: (sequence) => {
      if (sequence - covered < EVERY || sequence - asked < EVERY) return;
      asked = sequence;
      quietly();
    },
    cover: async (sequence) => (await make(sequence)) as Checkpoint,
    make: () => make(),
    close: async () => {
      clearInterval(timer);
      await turn;
      await notes?.close();
    },
  };
}
