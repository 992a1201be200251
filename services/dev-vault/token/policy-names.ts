/** cleanPolicies makes policy names comparable: lower case, sorted, each once, with or without "default". */
export function cleanPolicies(policies: readonly string[], hasDefault: boolean): string[] {
  const clean = new Set(
    policies.map((policy) => policy.trim().toLowerCase()).filter((policy) => policy !== ""),
  );
  // Root includes everything; it is never mixed with others.
  if (clean.has("root")) return ["root"];
  if (hasDefault) clean.add("default");
  else clean.delete("default");
  return [...clean].sort();
}
