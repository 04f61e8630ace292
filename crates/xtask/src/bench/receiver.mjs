// The receiver everybody writes first: it verifies the signature and keeps nothing.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, secret] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const { Webhooks } = await import(pathToFileURL(require.resolve("@octokit/webhooks")));
const webhooks = new Webhooks({ secret });

const server = createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = Buffer.concat(parts).toString("utf8");
  const good = await webhooks.verify(body, request.headers["x-hub-signature-256"]);
  const answer = good ? "accepted" : "refused";
  response.writeHead(good ? 202 : 401, { "Content-Length": answer.length });
  response.end(answer);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
