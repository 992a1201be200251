/** A message of a request, as far as the checks look at it. */
export interface Message {
  role: string;
  content: { type: string; id?: string; text?: string; tool_use_id?: string }[];
}

/** What is wrong with a conversation that goes to the model: no unanswered call, no answer without a call (law L4). */
export function checkConversation(messages: readonly Message[]): string[] {
  const faults: string[] = [];
  if (messages[0]?.role !== "user") faults.push("the conversation does not begin with the user");
  messages.forEach(({ role, content }, i) => {
    const before = messages[i - 1];
    if (before?.role === role) faults.push(`two messages of the ${role} follow each other`);
    const answers = content.flatMap((block) =>
      block.type === "tool_result" ? [block.tool_use_id ?? ""] : [],
    );
    const asked = (before?.role === "assistant" ? before.content : []).flatMap((block) =>
      block.type === "tool_use" ? [block.id ?? ""] : [],
    );
    if (role === "user" && answers.join() !== asked.join()) {
      faults.push(`message ${i} answers [${answers.join()}], and [${asked.join()}] was asked`);
    }
    const isLast = i === messages.length - 1;
    if (role === "assistant" && isLast && content.some(({ type }) => type === "tool_use")) {
      faults.push("the last message has an unanswered call");
    }
  });
  return faults;
}
