//! OpenAI's responses API, as Codex uses it: always a stream.

use http_body_util::Full;
use hyper::Response;
use hyper::body::Bytes;
use serde_json::{Value, json};

use super::{Asked, Directive, WORDS, cost, reply, reply_json, unlisted};

/// What a request holds. Codex puts notes of its own among the user's messages, at the beginning.
pub(super) fn asked(body: &Value) -> Asked {
    let items: Vec<&Value> = body["input"].as_array().into_iter().flatten().collect();
    let said = items.iter().rposition(|item| is_models(item));
    let newest = &items[said.map_or(0, |at| at + 1)..];
    let heard = |items: &[&Value]| -> String {
        let theirs = items.iter().filter(|item| item["role"] != "developer");
        theirs.map(|item| text(item)).collect::<Vec<_>>().join("\n")
    };
    Asked {
        newest: heard(newest),
        whole: heard(&items),
        is_conversation: body["tools"].as_array().is_some_and(|t| !t.is_empty()),
    }
}

/// Did the model say this?
fn is_models(item: &Value) -> bool {
    match item["type"].as_str() {
        Some("message") => item["role"] == "assistant",
        Some(kind) => !kind.ends_with("_output"),
        None => false,
    }
}

/// The text of a message, or of what a tool gave back.
fn text(item: &Value) -> String {
    let content = item.get("content").or_else(|| item.get("output"));
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(pieces)) => {
            let texts = pieces.iter().filter_map(|piece| piece["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            String::new()
        }
    }
}

/// The answer that the directive asks for.
pub(super) fn answer(_: &Value, directive: &Directive, number: u64) -> Response<Full<Bytes>> {
    let id = format!("resp_{number:024}");
    let item = item(directive, number);
    let usage = json!({
        "input_tokens": cost::INPUT + cost::CACHE_READ,
        "input_tokens_details": {"cached_tokens": cost::CACHE_READ},
        "output_tokens": cost::OUTPUT,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": cost::INPUT + cost::CACHE_READ + cost::OUTPUT,
    });
    let events = [
        json!({"type": "response.created", "response": {"id": id}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": id, "usage": usage}}),
    ];
    let mut stream = String::new();
    for event in events {
        let name = event["type"].as_str().unwrap_or_default();
        stream.push_str(&format!("event: {name}\ndata: {event}\n\n"));
    }
    reply(200, "text/event-stream", stream)
}

fn item(directive: &Directive, number: u64) -> Value {
    let call = |name: &str, arguments: Value| {
        json!({"type": "function_call", "id": format!("fc_{number:024}"),
            "call_id": format!("call_{number:024}"), "name": name,
            "arguments": arguments.to_string()})
    };
    let run = |command: &str| call("exec_command", json!({"cmd": command}));
    match directive {
        Directive::Run(command) => run(command),
        // It has no tool of its own for reading, and is given a part of a long output unless asked.
        Directive::Read(path) => call(
            "exec_command",
            json!({"cmd": format!("cat '{path}'"), "max_output_tokens": 100_000}),
        ),
        Directive::Permit(command) => call(
            "exec_command",
            json!({"cmd": unlisted(command), "sandbox_permissions": "require_escalated",
                "justification": "May I, as told?"}),
        ),
        Directive::Ask => {
            let options = json!([{"label": "Red (Recommended)", "description": "r"},
                {"label": "Blue", "description": "b"}]);
            let question = json!({"id": "colour", "header": "Colour",
                "question": "Which colour?", "options": options});
            call("request_user_input", json!({"questions": [question]}))
        }
        Directive::Slow(_) | Directive::Words => json!({"type": "message",
            "id": format!("msg_{number:024}"), "role": "assistant",
            "content": [{"type": "output_text", "text": WORDS}]}),
    }
}

/// A refusal.
pub(super) fn failure(status: u16, kind: &str) -> Response<Full<Bytes>> {
    let error = json!({"error": {"type": kind, "code": kind, "message": "as told"}});
    reply_json(status, &error)
}
