//! OpenAI's chat completions, as OpenCode uses them through `@ai-sdk/openai-compatible`: always a stream.

use http_body_util::Full;
use hyper::Response;
use hyper::body::Bytes;
use serde_json::{Value, json};

use super::{Asked, Directive, WORDS, cost, reply, reply_json, unlisted};

/// What a request holds. What tools gave back has messages of its own here.
pub(super) fn asked(body: &Value) -> Asked {
    let messages: Vec<&Value> = body["messages"].as_array().into_iter().flatten().collect();
    let said = messages.iter().rposition(|m| m["role"] == "assistant");
    let newest = &messages[said.map_or(0, |at| at + 1)..];
    let heard = |messages: &[&Value]| -> String {
        let theirs = messages.iter().filter(|m| m["role"] != "system");
        let texts: Vec<String> = theirs.map(|m| text(&m["content"])).collect();
        texts.join("\n")
    };
    Asked {
        newest: heard(newest),
        whole: heard(&messages),
        is_conversation: body["tools"].as_array().is_some_and(|t| !t.is_empty()),
    }
}

/// Plain content, or its text pieces.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(pieces) => {
            let texts = pieces.iter().filter_map(|piece| piece["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// The answer that the directive asks for.
pub(super) fn answer(body: &Value, directive: &Directive, number: u64) -> Response<Full<Bytes>> {
    let rest = rest_of_a_file(body);
    let (delta, finish) = match &rest {
        Some((path, line)) => call("read", &json!({"filePath": path, "offset": line}), number),
        None => delta(directive, number),
    };
    let usage = json!({
        "prompt_tokens": cost::INPUT + cost::CACHE_READ,
        "prompt_tokens_details": {"cached_tokens": cost::CACHE_READ},
        "completion_tokens": cost::OUTPUT,
        "total_tokens": cost::INPUT + cost::CACHE_READ + cost::OUTPUT,
    });
    let chunk = |choices: Value, usage: &Value| {
        let chunk = json!({"id": format!("chatcmpl-{number:024}"), "model": body["model"],
            "object": "chat.completion.chunk", "created": 1, "choices": choices, "usage": usage});
        format!("data: {chunk}\n\n")
    };
    let choice = |delta: Value, finish: Value| json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
    let stream = [
        chunk(choice(delta, Value::Null), &Value::Null),
        chunk(choice(json!({}), json!(finish)), &Value::Null),
        chunk(json!([]), &usage),
        "data: [DONE]\n\n".to_owned(),
    ];
    reply(200, "text/event-stream", stream.concat())
}

/// The file that a tool has read a part of, and the line at which the rest begins: OpenCode gives so much at
/// a time and says how to go on, and a model that was told to read a file does.
fn rest_of_a_file(body: &Value) -> Option<(String, u64)> {
    let newest = body["messages"].as_array()?.last()?;
    let read = newest["content"]
        .as_str()
        .filter(|_| newest["role"] == "tool")?;
    let (path, _) = read.strip_prefix("<path>")?.split_once("</path>")?;
    let (_, line) = read.rsplit_once("Use offset=")?;
    let (line, _) = line.split_once(" to continue.")?;
    Some((path.to_owned(), line.parse().ok()?))
}

fn call(name: &str, arguments: &Value, number: u64) -> (Value, &'static str) {
    let function = json!({"name": name, "arguments": arguments.to_string()});
    let call = json!({"index": 0, "id": format!("call_{number:024}"),
        "type": "function", "function": function});
    let delta = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    (delta, "tool_calls")
}

fn delta(directive: &Directive, number: u64) -> (Value, &'static str) {
    let call = |name: &str, arguments: Value| call(name, &arguments, number);
    let run = |command: &str| {
        call(
            "bash",
            json!({"command": command, "description": "as told"}),
        )
    };
    match directive {
        Directive::Run(command) => run(command),
        Directive::Permit(command) => run(&unlisted(command)),
        Directive::Read(path) => call("read", json!({"filePath": path})),
        Directive::Ask => {
            let options = json!([{"label": "Red", "description": "r"},
                {"label": "Blue", "description": "b"}]);
            let question = json!({"question": "Which colour?", "header": "Colour",
                "options": options});
            call("question", json!({"questions": [question]}))
        }
        Directive::Slow(_) | Directive::Words => {
            (json!({"role": "assistant", "content": WORDS}), "stop")
        }
    }
}

/// A refusal.
pub(super) fn failure(status: u16, kind: &str) -> Response<Full<Bytes>> {
    let error = json!({"error": {"type": kind, "code": kind, "message": "as told"}});
    reply_json(status, &error)
}
