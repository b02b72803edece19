// A scripted model: a local HTTP server that speaks OpenAI's chat completions. Each request takes the next step; a step
// is a text, or {text}, or {tool, input}, or {hang: true}. {tool, input, slow: true} says the tool's name first and its arguments in
// pieces, as real models do: a client's card of the call is there before anybody knows what the call will do. A step with
// `after`, a promise, is answered when that is kept. `aside` answers requests that offer no tools, without taking a step:
// agents have their sessions named so, at a moment that nobody can foresee.
import { createServer } from "node:http";

export async function startModel(steps, { aside } = {}) {
  const seen = [];
  /** When each answer was whole: milliseconds of the clock, in the order of `seen`. */
  const answered = [];
  /** When the first piece of each answer was written, likewise. */
  const began = [];
  const waiting = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (piece) => (body += piece));
    request.on("end", async () => {
      if (!request.url.endsWith("/chat/completions")) {
        response.writeHead(404).end();
        return;
      }
      const n = seen.push(JSON.parse(body)) - 1;
      const step = aside !== undefined && !seen[n].tools?.length ? aside : (steps.shift() ?? "Done.");
      await step.after;
      response.writeHead(200, { "content-type": "text/event-stream" });
      const send = (delta, finish = null) =>
        response.write(`data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "scripted", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`);
      began[n] = Date.now();
      const text = typeof step === "string" ? step : step.text;
      if (text !== undefined) {
        for (const piece of text.match(/.{1,4}/gs) ?? []) send({ role: "assistant", content: piece });
        send({}, "stop");
      } else if (step.hang) {
        send({ role: "assistant", content: "thinking" });
        waiting.splice(0).forEach((wake) => wake());
        return;
      } else {
        const pieces = step.slow ? ["", ...(JSON.stringify(step.input).match(/.{1,20}/gs) ?? [])] : [JSON.stringify(step.input)];
        send({ role: "assistant", tool_calls: [{ index: 0, id: `call_${seen.length}`, type: "function", function: { name: step.tool, arguments: pieces.shift() } }] });
        const more = () => {
          if (pieces.length > 0) {
            send({ tool_calls: [{ index: 0, function: { arguments: pieces.shift() } }] });
            setTimeout(more, 20);
            return;
          }
          send({}, "tool_calls");
          answered[n] = Date.now();
          response.end("data: [DONE]\n\n");
        };
        more();
        return;
      }
      answered[n] = Date.now();
      response.end("data: [DONE]\n\n");
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    seen,
    answered,
    began,
    hanging: () => new Promise((resolve) => waiting.push(resolve)),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
