// The scripted model of the end-to-end tests as a program: steps come from a JSON file, the address goes to standard output.
// What was asked is answered at /seen, for assertions.
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { startModel } from "../../../test/e2e/model.mjs";

const steps = JSON.parse(readFileSync(process.argv[2], "utf8"));
const model = await startModel(steps);
const seen = createServer((request, response) => {
  response.writeHead(200, { "content-type": "application/json", connection: "close" });
  response.end(JSON.stringify(model.seen));
});
await new Promise((resolve) => seen.listen(0, "127.0.0.1", resolve));
console.log(JSON.stringify({ url: model.url, seen: `http://127.0.0.1:${seen.address().port}/` }));
process.stdin.resume();
process.stdin.on("end", () => process.exit(0)); // ends with the editor that started it
