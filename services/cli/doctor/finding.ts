/** What the doctor found out about one part. */
export interface Finding {
  /** Part of the mesh or of the machine. */
  readonly part: string;
  /** weak: it works, with less protection or comfort than it could. */
  readonly state: "well" | "weak" | "ill";
  readonly detail: string;
  /** What to do about it. */
  readonly remedy?: string;
}

/** well says that a part is as it should be. */
export function well(part: string, detail: string): Finding {
  return { part, state: "well", detail };
}

/** weak says that a part works but could be better. */
export function weak(part: string, detail: string, remedy?: string): Finding {
  return { part, state: "weak", detail, ...(remedy ? { remedy } : {}) };
}

/** ill says that a part does not work. */
export function ill(part: string, detail: string, remedy?: string): Finding {
  return { part, state: "ill", detail, ...(remedy ? { remedy } : {}) };
}
