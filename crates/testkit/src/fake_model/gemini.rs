//! Google's `generateContent`, as Gemini CLI uses it: streamed for the conversation, whole for what it
//! asks besides.

use http_body_util::Full;
use hyper::Response;
use hyper::body::Bytes;
use serde_json::{Value, json};

use super::{Asked, Directive, WORDS, cost, reply, reply_json, tokens, unlisted};

/// Is this one of its paths? They end with the method: `/v1beta/models/MODEL:streamGenerateContent`.
pub(super) fn is_path(path: &str) -> bool {
    path.starts_with("/v1beta/models/") && method(path).is_some()
}

/// The method that a path names.
fn method(path: &str) -> Option<&str> {
    let (_, method) = path.rsplit_once(':')?;
    matches!(
        method,
        "generateContent" | "streamGenerateContent" | "countTokens"
    )
    .then_some(method)
}

/// What a request holds. Results of tools come in the user's name.
pub(super) fn asked(body: &Value) -> Asked {
    let contents: Vec<&Value> = body["contents"].as_array().into_iter().flatten().collect();
    let said = contents.iter().rposition(|c| c["role"] == "model");
    let heard = |contents: &[&Value]| -> String {
        let texts = contents.iter().map(|content| text(content));
        texts.collect::<Vec<_>>().join("\n")
    };
    Asked {
        newest: heard(&contents[said.map_or(0, |at| at + 1)..]),
        whole: heard(&contents),
        is_conversation: body["tools"].as_array().is_some_and(|t| !t.is_empty()),
    }
}

/// The text of one content: words, and what tools gave back.
fn text(content: &Value) -> String {
    let parts = content["parts"].as_array().into_iter().flatten();
    let texts = parts.filter_map(|part| {
        let words = part["text"].as_str();
        words.or_else(|| part["functionResponse"]["response"]["output"].as_str())
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The answer to a request that only wants its tokens counted.
pub(super) fn count(path: &str, asked: &Asked) -> Option<Response<Full<Bytes>>> {
    let counted = json!({"totalTokens": tokens(&asked.whole)});
    (method(path) == Some("countTokens")).then(|| reply_json(200, &counted))
}

/// The answer that the directive asks for.
pub(super) fn answer(
    path: &str,
    body: &Value,
    directive: &Directive,
    number: u64,
) -> Response<Full<Bytes>> {
    let part = shaped(body).unwrap_or_else(|| part(directive));
    let answer = json!({
        "candidates": [{"index": 0, "finishReason": "STOP",
            "content": {"role": "model", "parts": [part]}}],
        "usageMetadata": {
            "promptTokenCount": cost::INPUT + cost::CACHE_READ,
            "cachedContentTokenCount": cost::CACHE_READ,
            "candidatesTokenCount": cost::OUTPUT,
            "totalTokenCount": cost::INPUT + cost::CACHE_READ + cost::OUTPUT},
        "modelVersion": "fake",
        "responseId": format!("answer-{number}"),
    });
    if method(path) == Some("streamGenerateContent") {
        reply(200, "text/event-stream", format!("data: {answer}\r\n\r\n"))
    } else {
        reply_json(200, &answer)
    }
}

/// An object of the shape that a request asks for: it asks so which model a prompt is for, and asks again
/// for as long as it gets words.
fn shaped(body: &Value) -> Option<Value> {
    let properties = body["generationConfig"]["responseJsonSchema"]["properties"].as_object()?;
    let of_type = |schema: &Value| match schema["type"].as_str() {
        Some("INTEGER" | "NUMBER") => json!(1),
        Some("BOOLEAN") => json!(false),
        Some(_) | None => json!(WORDS),
    };
    let filled = properties
        .iter()
        .map(|(name, schema)| (name.clone(), of_type(schema)));
    let object: serde_json::Map<String, Value> = filled.collect();
    Some(json!({"text": Value::Object(object).to_string()}))
}

fn part(directive: &Directive) -> Value {
    let call = |name: &str, args: Value| json!({"functionCall": {"name": name, "args": args}});
    let run = |command: &str| {
        let args = json!({"command": command, "description": "as told"});
        call("run_shell_command", args)
    };
    match directive {
        Directive::Run(command) => run(command),
        Directive::Permit(command) => run(&unlisted(command)),
        Directive::Read(path) => call("read_file", json!({"file_path": path})),
        Directive::Ask => {
            let options = json!([{"label": "Red", "description": "r"},
                {"label": "Blue", "description": "b"}]);
            let question = json!({"question": "Which colour?", "header": "Colour",
                "type": "choice", "options": options});
            call("ask_user", json!({"questions": [question]}))
        }
        Directive::Slow(_) | Directive::Words => json!({"text": WORDS}),
    }
}

/// A refusal.
pub(super) fn failure(status: u16, kind: &str) -> Response<Full<Bytes>> {
    let error = json!({"error": {"code": status, "message": "as told", "status": kind}});
    reply_json(status, &error)
}
