/** One instruction of classic BPF. */
export type Instruction = { code: number; jumpTrue: number; jumpFalse: number; value: number };

const LOAD_WORD_ABSOLUTE = 0x20;
const JUMP_EQUAL = 0x15;
const JUMP_GREATER_OR_EQUAL = 0x35;
const JUMP_ANY_BIT = 0x45;
const RETURN = 0x06;

/** A step of a filter; `goTo` names a label. A jump that is not taken falls through to the next step. */
export type Step =
  | { load: number }
  | { test: "equal" | "atLeast" | "anyBit"; value: number; goTo: string }
  | { result: number }
  | { label: string };

const TESTS = { equal: JUMP_EQUAL, atLeast: JUMP_GREATER_OR_EQUAL, anyBit: JUMP_ANY_BIT };

/** assemble turns steps into the bytes of a struct sock_filter array (x86-64 byte order). */
export function assemble(steps: readonly Step[]): Buffer {
  const labels = new Map<string, number>();
  const real: Exclude<Step, { label: string }>[] = [];
  for (const step of steps) {
    if ("label" in step) labels.set(step.label, real.length);
    else real.push(step);
  }
  return Buffer.concat(real.map((step, index) => encode(translate(step, index, labels))));
}

function translate(
  step: Exclude<Step, { label: string }>,
  index: number,
  labels: Map<string, number>,
): Instruction {
  if ("load" in step) return { code: LOAD_WORD_ABSOLUTE, jumpTrue: 0, jumpFalse: 0, value: step.load };
  if ("result" in step) return { code: RETURN, jumpTrue: 0, jumpFalse: 0, value: step.result };
  const target = labels.get(step.goTo);
  const distance = target === undefined ? -1 : target - index - 1;
  // BPF jumps forward only, and at most 255 instructions.
  if (distance < 0 || distance > 255) throw new RangeError(`label ${step.goTo} cannot be reached`);
  return { code: TESTS[step.test], jumpTrue: distance, jumpFalse: 0, value: step.value };
}

function encode(instruction: Instruction): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt16LE(instruction.code, 0);
  bytes.writeUInt8(instruction.jumpTrue, 2);
  bytes.writeUInt8(instruction.jumpFalse, 3);
  bytes.writeUInt32LE(instruction.value >>> 0, 4);
  return bytes;
}
