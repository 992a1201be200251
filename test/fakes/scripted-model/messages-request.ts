/** The parts of a Messages API request that the scripted model reads. Only validateRequest vouches for the shape. */
export interface MessagesRequest {
  readonly model: string;
  readonly max_tokens: number;
  readonly stream?: boolean;
  readonly system?: string | readonly Block[];
  readonly messages: readonly Message[];
  readonly tools?: readonly Tool[];
}

/** One message of a request. */
export interface Message {
  readonly role: "user" | "assistant" | "system";
  readonly content: string | readonly Block[];
}

/** One content block of a request, of any type. */
export interface Block {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A tool that the request offers. */
export interface Tool {
  readonly name: string;
  readonly type?: string;
  readonly input_schema?: {
    readonly properties?: Record<string, PropertySchema>;
    readonly required?: readonly string[];
  };
  readonly [field: string]: unknown;
}

/** The part of a JSON schema that is needed to make an input up. */
export interface PropertySchema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
}

/** blocksOf returns a message's content as blocks; a plain string is one text block. */
export function blocksOf(message: Message): readonly Block[] {
  return typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
}

/** textOf joins the text of blocks, of text documents and of the content of tool results. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return (content as Block[]).map(blockText).filter(Boolean).join("\n");
}

function blockText(block: Block): string {
  if (block.type === "text") return String(block.text ?? "");
  const source = block.source as { type?: string; data?: string } | undefined;
  return block.type === "document" && source?.type === "text" ? (source.data ?? "") : "";
}
