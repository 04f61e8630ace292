// Signs GitHub's example payloads with GitHub's own library and posts them, in the package's order.
// Arguments: folder with node_modules, URL of the receiver, secret. One JSON line for each answer.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, url, secret] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const { Webhooks } = await import(pathToFileURL(require.resolve("@octokit/webhooks")));
const examples = require("@octokit/webhooks-examples");
const webhooks = new Webhooks({ secret });

async function post(id, event, payload, { body = JSON.stringify(payload), signed = body, type = "application/json" } = {}) {
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": type,
      "user-agent": "GitHub-Hookshot/044aadd",
      "x-github-event": event,
      "x-github-delivery": id,
      "x-hub-signature-256": await webhooks.sign(signed),
    },
    body,
  });
  const answer = await response.json();
  console.log(JSON.stringify({ id, action: payload.action ?? "-", http: response.status, ...answer }));
}

const payloads = (event) => examples.find(({ name }) => name === event).examples;
for (const { name, examples: all } of examples) {
  for (const [index, payload] of all.entries()) {
    await post(`${name.replaceAll("_", "-")}-${index}`, name, payload);
  }
}

// What the examples lack.
const copy = (event, action) => structuredClone(payloads(event).find((p) => p.action === action));
const comment = copy("issue_comment", "created");
const again = (id) => Object.assign(comment.comment, { id, node_id: `IC_${id}` });
again(1);
comment.issue.pull_request = { url: `${comment.repository.url}/pulls/${comment.issue.number}` };
await post("made-on-pull", "issue_comment", comment);
again(2);
const form = `payload=${encodeURIComponent(JSON.stringify(comment))}`;
await post("made-form", "issue_comment", comment, { body: form, type: "application/x-www-form-urlencoded" });
again(3);
await post("made-space", "issue_comment", comment, { body: `${JSON.stringify(comment)} `, signed: JSON.stringify(comment) });
const labeled = copy("issues", "labeled");
labeled.label.name = "the-loop: auto-execute";
await post("made-armed", "issues", labeled);
const closed = copy("issues", "opened");
Object.assign(closed, { action: "closed" });
Object.assign(closed.issue, { state: "closed", closed_at: "2019-05-15T15:20:30Z" });
await post("made-closed", "issues", closed);
const edited = copy("issues", "edited");
edited.changes = { title: { from: "x" }, body: { from: "y" } };
await post("made-edited", "issues", edited);
