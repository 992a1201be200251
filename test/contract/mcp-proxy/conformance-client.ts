// What the conformance suite starts as the client under test. The client is mcp-proxy, which runs already: this tells the
// test where the suite's server is, waits until it has been driven there, and ends as that went.
const [port, url] = process.argv.slice(2);
const answer = await fetch(`http://127.0.0.1:${port}/`, {
  method: "POST",
  body: JSON.stringify({
    url,
    scenario: process.env.MCP_CONFORMANCE_SCENARIO ?? "",
    context: JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}"),
  }),
});
const text = await answer.text();
process.stdout.write(`${text}\n`);
process.exit(answer.ok ? 0 : 1);
