/** HclBlock is a block with one label, such as `path "kv/*" { … }`. */
export interface HclBlock {
  readonly type: string;
  readonly label: string;
  readonly body: Readonly<Record<string, unknown>>;
}

type Token = { kind: "name" | "string" | "number" | "sign" | "end"; text: string; line: number };

const LEXEME =
  /(?<space>\s+)|(?<comment>#[^\n]*|\/\/[^\n]*|\/\*[\s\S]*?\*\/)|(?<string>"(?:[^"\\\n]|\\.)*")|(?<number>-?\d+(?:\.\d+)?)|(?<name>[A-Za-z_][\w-]*)|(?<sign>[={}[\],:])/y;

/** parseHcl reads the subset of HCL that policies are written in: labelled blocks of attributes, lists and maps. */
export function parseHcl(source: string): HclBlock[] {
  const reader = new Reader(lex(source));
  const blocks: HclBlock[] = [];
  while (reader.peek().kind !== "end") {
    const type = reader.take("name").text;
    if (reader.peek().text === "=") throw reader.unexpected(reader.peek());
    const label = unquote(reader.take("string"));
    blocks.push({ type, label, body: reader.body() });
  }
  return blocks;
}

function lex(source: string): Token[] {
  const tokens: Token[] = [];
  let line = 1;
  LEXEME.lastIndex = 0;
  while (LEXEME.lastIndex < source.length) {
    const found = LEXEME.exec(source);
    if (!found) throw new Error(`At line ${line}: illegal character`);
    const groups = found.groups as Record<string, string | undefined>;
    for (const kind of ["string", "number", "name", "sign"] as const) {
      const text = groups[kind];
      if (text !== undefined) tokens.push({ kind, text, line });
    }
    line += found[0].split("\n").length - 1;
  }
  tokens.push({ kind: "end", text: "EOF", line });
  return tokens;
}

function unquote(token: Token): string {
  try {
    return JSON.parse(token.text) as string;
  } catch {
    throw new Error(`At line ${token.line}: illegal string`);
  }
}

class Reader {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  peek(): Token {
    return this.#tokens[this.#at] as Token;
  }

  take(kind: Token["kind"], sign?: string): Token {
    const token = this.peek();
    if (token.kind !== kind || (sign !== undefined && token.text !== sign)) throw this.unexpected(token);
    this.#at += 1;
    return token;
  }

  unexpected(token: Token): Error {
    return new Error(`At line ${token.line}: unexpected ${token.text}`);
  }

  /** body reads `{ key = value … }`; commas between attributes are allowed, as in maps. */
  body(): Record<string, unknown> {
    this.take("sign", "{");
    const body: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
    while (this.peek().text !== "}" || this.peek().kind !== "sign") {
      const token = this.peek();
      const key = token.kind === "string" ? unquote(this.take("string")) : this.take("name").text;
      if (key in body) throw new Error(`At line ${token.line}: "${key}" is given twice`);
      const next = this.peek();
      if (next.kind === "sign" && (next.text === "=" || next.text === ":")) this.#at += 1;
      else if (next.text !== "{") throw this.unexpected(next);
      body[key] = this.#value();
      if (this.peek().text === "," && this.peek().kind === "sign") this.#at += 1;
    }
    this.take("sign", "}");
    return body;
  }

  #value(): unknown {
    const token = this.peek();
    if (token.kind === "string") return unquote(this.take("string"));
    if (token.kind === "number") return Number(this.take("number").text);
    if (token.kind === "name" && (token.text === "true" || token.text === "false")) {
      return this.take("name").text === "true";
    }
    if (token.text === "{") return this.body();
    if (token.text !== "[" || token.kind !== "sign") throw this.unexpected(token);
    this.take("sign", "[");
    const list: unknown[] = [];
    while (this.peek().text !== "]" || this.peek().kind !== "sign") {
      list.push(this.#value());
      if (this.peek().text !== "]") this.take("sign", ",");
    }
    this.take("sign", "]");
    return list;
  }
}
