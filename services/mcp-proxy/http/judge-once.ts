import { judgeModelRequest, type ModelRequest } from "../domain/judge-model-request.ts";

/** What is to be said of a body: what it asks for, or why that is denied. */
export type Judged = { body: Buffer } & ({ asked: ModelRequest } | { error: unknown });

/** Judges bodies, each once however often it is asked: to parse a long conversation takes a while. */
export function judgeOnce(): (body: Buffer) => Judged {
  let last: Judged | undefined;
  return (body) => {
    if (last?.body !== body) last = judge(body);
    return last;
  };
}

function judge(body: Buffer): Judged {
  try {
    return { body, asked: judgeModelRequest(body) };
  } catch (error) {
    return { body, error };
  }
}
