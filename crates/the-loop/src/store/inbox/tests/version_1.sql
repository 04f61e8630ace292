PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;
PRAGMA application_id = 0x746C6F70;
PRAGMA user_version = 1;
CREATE TABLE deliveries (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  delivery_id TEXT NOT NULL UNIQUE,
  content_key TEXT NOT NULL,
  ingress TEXT NOT NULL,
  provider TEXT NOT NULL, host TEXT NOT NULL,
  event TEXT NOT NULL, action TEXT, actor TEXT, received_at INTEGER NOT NULL,
  state TEXT NOT NULL,
  reason TEXT, attempts INTEGER NOT NULL DEFAULT 0, retry_at INTEGER,
  body BLOB) STRICT;
CREATE TABLE outcomes (
  seq INTEGER NOT NULL REFERENCES deliveries(seq) ON DELETE CASCADE,
  item_key TEXT NOT NULL, item TEXT NOT NULL, endpoint TEXT,
  state TEXT NOT NULL,
  reason TEXT, attempts INTEGER NOT NULL DEFAULT 0, retry_at INTEGER,
  marker TEXT UNIQUE,
  given_up_by TEXT,
  intent_at INTEGER, pasted_at INTEGER, confirmed_at INTEGER, confirmed_by TEXT,
  updated_at INTEGER NOT NULL, PRIMARY KEY (seq, item_key)) STRICT, WITHOUT ROWID;
CREATE INDEX outcomes_by_item ON outcomes (item_key, seq);
CREATE TABLE dedupe (key TEXT PRIMARY KEY, kind TEXT NOT NULL,
  seq INTEGER NOT NULL, first_at INTEGER NOT NULL, last_at INTEGER NOT NULL,
  again INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
CREATE TABLE watermarks (item_key TEXT PRIMARY KEY, through_seq INTEGER NOT NULL, at INTEGER NOT NULL,
  why TEXT NOT NULL) STRICT;
CREATE TABLE own_comments (provider TEXT, host TEXT, comment_id TEXT, item_key TEXT, at INTEGER,
  PRIMARY KEY (provider, host, comment_id)) STRICT, WITHOUT ROWID;
CREATE TABLE parked (item_key TEXT PRIMARY KEY, item TEXT, reason TEXT, since INTEGER, told_at INTEGER,
  released_at INTEGER, base INTEGER) STRICT;
CREATE TABLE asks (item_key TEXT PRIMARY KEY, at INTEGER, question TEXT, comment_id TEXT) STRICT;
CREATE TABLE usage (item_key TEXT, day TEXT, input INTEGER, output INTEGER, cache_read INTEGER, cache_write INTEGER,
  PRIMARY KEY (item_key, day)) STRICT;
CREATE TABLE cursors (provider TEXT, host TEXT, repo_key TEXT, stream TEXT, since TEXT, etag TEXT, at INTEGER,
  PRIMARY KEY (provider, host, repo_key, stream)) STRICT;
CREATE TABLE ci_last (item_key TEXT, name TEXT, conclusion TEXT, at INTEGER, PRIMARY KEY (item_key, name)) STRICT;
CREATE TABLE once (key TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, at INTEGER NOT NULL) STRICT;

INSERT INTO deliveries VALUES
  (1, '72d3162e-0001', 'github/github.com/comment/IC_kwDO1/created', 'webhook', 'github', 'github.com',
   'issue_comment', 'created', 'ada', 1772355600000, 'routed', NULL, 0, NULL,
   CAST('{"delivery_id":"72d3162e-0001","content_key":"github/github.com/comment/IC_kwDO1/created","numeric_key":"github/github.com/comment/#7/created","ingress":"webhook","item":"github:Octo/Repo#1","event":"issue_comment","action":"created","actor":{"login":"ada","id":7,"bot":false},"received_at":"2026-03-01T09:00:00Z","facts":{"title":"Add a flag","closed":false,"labels":["the-loop: auto-execute"],"is_pull_request":false},"effect":{"kind":"text","comment_id":"IC_kwDO1","body":"please add it","created_at":"2026-03-01T08:59:58Z"}}' AS BLOB)),
  (2, '72d3162e-0002', 'github/github.com/issue/I_kwDO5/presence@72d3162e-0002', 'webhook', 'github', 'github.com',
   'issues', 'labeled', 'ada', 1772355601000, 'dropped', 'unauthorized-actor', 0, NULL, NULL),
  (3, 'cli-start-0003', 'cli//start/0003/start', 'cli', 'local', '', 'start', NULL, 'ada', 1772355602000,
   'accepted', NULL, 0, NULL,
   CAST('{"delivery_id":"cli-start-0003","content_key":"cli//start/0003/start","ingress":"cli","item":"local:octo/repo#1","event":"start","received_at":"2026-03-01T09:00:02Z","effect":{"kind":"start"}}' AS BLOB));
UPDATE sqlite_sequence SET seq = 40 WHERE name = 'deliveries';
UPDATE deliveries SET delivery_id = '72d3162e-0003' WHERE seq = 3;
INSERT INTO outcomes (seq, item_key, item, endpoint, state, reason, attempts, marker, updated_at)
  VALUES (1, 'github:octo/repo#1', 'github:Octo/Repo#1', NULL, 'queued', 'parked', 1, 'dlv-00112233445566aa', 1772355601000);
INSERT INTO dedupe VALUES
  ('github/github.com/comment/IC_kwDO1/created', 'content', 1, 1772355600000, 1772355600000, 0),
  ('github/github.com/comment/#7/created', 'numeric', 1, 1772355600000, 1772355600000, 0),
  ('72d3162e-0001', 'transport', 1, 1772355600000, 1772355600000, 0),
  ('github/github.com/issue/I_kwDO5/presence@72d3162e-0002', 'content', 2, 1772355601000, 1772355601000, 0),
  ('72d3162e-0002', 'transport', 2, 1772355601000, 1772355601000, 0),
  ('cli//start/0003/start', 'content', 3, 1772355602000, 1772355602000, 0),
  ('72d3162e-0003', 'transport', 3, 1772355602000, 1772355602000, 0);
INSERT INTO watermarks VALUES ('github:octo/repo#2', 40, 1772355602000, 'reset');
INSERT INTO parked (item_key, item, reason, since) VALUES ('github:octo/repo#2', 'github:octo/repo#2', 'deliveries-per-hour', 1772355602000);
INSERT INTO meta VALUES ('receiver-heartbeat', '2026-03-01T09:00:02Z', 1772355602000);
