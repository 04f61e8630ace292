-- Rows of a conversation as OpenCode 1.18.33 wrote them; tables of other uses are left out, diffs too.
CREATE TABLE `session` (
  `id` text PRIMARY KEY,
  `project_id` text NOT NULL,
  `workspace_id` text,
  `parent_id` text,
  `slug` text NOT NULL,
  `directory` text NOT NULL,
  `path` text,
  `title` text NOT NULL,
  `version` text NOT NULL,
  `share_url` text,
  `summary_additions` integer,
  `summary_deletions` integer,
  `summary_files` integer,
  `summary_diffs` text,
  `metadata` text,
  `cost` real DEFAULT 0 NOT NULL,
  `tokens_input` integer DEFAULT 0 NOT NULL,
  `tokens_output` integer DEFAULT 0 NOT NULL,
  `tokens_reasoning` integer DEFAULT 0 NOT NULL,
  `tokens_cache_read` integer DEFAULT 0 NOT NULL,
  `tokens_cache_write` integer DEFAULT 0 NOT NULL,
  `revert` text,
  `permission` text,
  `agent` text,
  `model` text,
  `time_created` integer NOT NULL,
  `time_updated` integer NOT NULL,
  `time_compacting` integer,
  `time_archived` integer
  );
INSERT INTO `session` VALUES ('ses_dd01c3642ffeBGaABoNrGpVwnu','7d57283f92731f1d5306c17ba53c759cbfee90c9',NULL,NULL,'brave-cactus','/tmp/oc/repo','','Done.','1.18.33',NULL,0,0,0,NULL,NULL,0.0,84,42,0,24,0,NULL,NULL,'build','{"id":"fake-model","providerID":"fake"}',1796099787197,1796099855583,NULL,NULL);
CREATE TABLE `message` (
  `id` text PRIMARY KEY,
  `session_id` text NOT NULL,
  `time_created` integer NOT NULL,
  `time_updated` integer NOT NULL,
  `data` text NOT NULL,
  CONSTRAINT `fk_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
  );
INSERT INTO `message` VALUES ('msg_22fe3cb75001bQKwyDNk9m05rz','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099787637,1796099801166,'{"role":"user","time":{"created":1796099787637},"agent":"build","model":{"providerID":"fake","modelID":"fake-model"},"summary":{"diffs":[]}}');
INSERT INTO `message` VALUES ('msg_22fe3cc19001T6b0osMnnJnEZH','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099787801,1796099800557,'{"parentID":"msg_22fe3cb75001bQKwyDNk9m05rz","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/tmp/oc/repo","root":"/tmp/oc/repo"},"cost":0,"tokens":{"total":25,"input":14,"output":7,"reasoning":0,"cache":{"write":0,"read":4}},"modelID":"fake-model","providerID":"fake","time":{"created":1796099787801,"completed":1796099800534},"finish":"stop"}');
INSERT INTO `message` VALUES ('msg_22fe407b5001aO1c2BpE1XDwkx','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099803061,1796099812738,'{"role":"user","time":{"created":1796099803061},"agent":"build","model":{"providerID":"fake","modelID":"fake-model"},"summary":{"diffs":[]}}');
INSERT INTO `message` VALUES ('msg_22fe4080f001pV0xY4XD2ahjeq','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099803151,1796099812130,'{"parentID":"msg_22fe407b5001aO1c2BpE1XDwkx","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/tmp/oc/repo","root":"/tmp/oc/repo"},"cost":0,"tokens":{"total":25,"input":14,"output":7,"reasoning":0,"cache":{"write":0,"read":4}},"modelID":"fake-model","providerID":"fake","time":{"created":1796099803151,"completed":1796099812124},"finish":"stop"}');
INSERT INTO `message` VALUES ('msg_22fe41035001ND1D9d6pkdmRhh','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099805237,1796099813881,'{"role":"user","time":{"created":1796099805237},"agent":"build","model":{"providerID":"fake","modelID":"fake-model"},"summary":{"diffs":[]}}');
INSERT INTO `message` VALUES ('msg_22fe42b2c001RSCRfgz3q8RNcU','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099812140,1796099813623,'{"parentID":"msg_22fe41035001ND1D9d6pkdmRhh","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/tmp/oc/repo","root":"/tmp/oc/repo"},"cost":0,"tokens":{"total":25,"input":14,"output":7,"reasoning":0,"cache":{"write":0,"read":4}},"modelID":"fake-model","providerID":"fake","time":{"created":1796099812140,"completed":1796099813617},"finish":"stop"}');
INSERT INTO `message` VALUES ('msg_22fe44415001PpL693Df5OBIRc','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099818518,1796099835530,'{"role":"user","time":{"created":1796099818518},"agent":"build","model":{"providerID":"fake","modelID":"fake-model"},"summary":{"diffs":[]}}');
INSERT INTO `message` VALUES ('msg_22fe4449c001x1P3EbCcPoh2gx','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099818652,1796099832180,'{"parentID":"msg_22fe44415001PpL693Df5OBIRc","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/tmp/oc/repo","root":"/tmp/oc/repo"},"cost":0,"tokens":{"total":25,"input":14,"output":7,"reasoning":0,"cache":{"write":0,"read":4}},"modelID":"fake-model","providerID":"fake","time":{"created":1796099818652,"completed":1796099832075},"finish":"tool-calls"}');
INSERT INTO `message` VALUES ('msg_22fe479d1001xhFbpXp22ECtff','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099832273,1796099835053,'{"parentID":"msg_22fe44415001PpL693Df5OBIRc","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/tmp/oc/repo","root":"/tmp/oc/repo"},"cost":0,"tokens":{"total":25,"input":14,"output":7,"reasoning":0,"cache":{"write":0,"read":4}},"modelID":"fake-model","providerID":"fake","time":{"created":1796099832273,"completed":1796099835051},"finish":"stop"}');
INSERT INTO `message` VALUES ('msg_22fe48a95001GlPtBUdnM21IG3','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099836565,1796099838723,'{"role":"user","time":{"created":1796099836565},"agent":"build","model":{"providerID":"fake","modelID":"fake-model"},"summary":{"diffs":[]}}');
INSERT INTO `message` VALUES ('msg_22fe48ad0001hoYSVGlHPqzQ76','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099836624,1796099838616,'{"parentID":"msg_22fe48a95001GlPtBUdnM21IG3","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/tmp/oc/repo","root":"/tmp/oc/repo"},"cost":0,"tokens":{"total":25,"input":14,"output":7,"reasoning":0,"cache":{"write":0,"read":4}},"modelID":"fake-model","providerID":"fake","time":{"created":1796099836624,"completed":1796099838613},"finish":"tool-calls"}');
INSERT INTO `message` VALUES ('msg_22fe4c357001NdDOIZ3AqrFzbD','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099851096,1796099851633,'{"role":"user","time":{"created":1796099851096},"agent":"build","model":{"providerID":"fake","modelID":"fake-model"},"summary":{"diffs":[]}}');
INSERT INTO `message` VALUES ('msg_22fe4c3b1001Ziv7kA5CiLNYTO','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099851185,1796099853452,'{"parentID":"msg_22fe4c357001NdDOIZ3AqrFzbD","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/tmp/oc/repo","root":"/tmp/oc/repo"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"modelID":"fake-model","providerID":"fake","time":{"created":1796099851185,"completed":1796099853450}}');
INSERT INTO `message` VALUES ('msg_22fe4d45c0017XMo7376s0OCHy','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099855452,1796099855592,'{"role":"user","time":{"created":1796099855452},"agent":"build","model":{"providerID":"fake","modelID":"fake-model"},"summary":{"diffs":[]}}');
INSERT INTO `message` VALUES ('msg_22fe4d489001iOiUKXzllHfHpa','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099855497,1796099860730,'{"parentID":"msg_22fe4d45c0017XMo7376s0OCHy","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/tmp/oc/repo","root":"/tmp/oc/repo"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"modelID":"fake-model","providerID":"fake","time":{"created":1796099855497,"completed":1796099860727}}');
CREATE TABLE `part` (
  `id` text PRIMARY KEY,
  `message_id` text NOT NULL,
  `session_id` text NOT NULL,
  `time_created` integer NOT NULL,
  `time_updated` integer NOT NULL,
  `data` text NOT NULL,
  CONSTRAINT `fk_part_message_id_message_id_fk` FOREIGN KEY (`message_id`) REFERENCES `message`(`id`) ON DELETE CASCADE
  );
INSERT INTO `part` VALUES ('prt_22fe3cb85001b5anH0iazxiFIi','msg_22fe3cb75001bQKwyDNk9m05rz','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099787681,1796099787715,'{"type":"text","text":"the-loop delivery dlv-9f3c0a1b2d4e5f60 for local:octo/repo#15: issue_comment created\nHello."}');
INSERT INTO `part` VALUES ('prt_22fe3f9a0001MafdgxAdZP2LIs','msg_22fe3cc19001T6b0osMnnJnEZH','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099799456,1796099799467,'{"snapshot":"4b825dc642cb6eb9a060e54bf8d69288fbee4904","type":"step-start"}');
INSERT INTO `part` VALUES ('prt_22fe3f9b3001CssL6dyEAahG4U','msg_22fe3cc19001T6b0osMnnJnEZH','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099799475,1796099799500,'{"type":"text","text":"Done.","time":{"start":1796099799475,"end":1796099799489}}');
INSERT INTO `part` VALUES ('prt_22fe3fc5f001Rr8COu4fhSfWJ0','msg_22fe3cc19001T6b0osMnnJnEZH','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099800159,1796099800162,'{"reason":"stop","snapshot":"4b825dc642cb6eb9a060e54bf8d69288fbee4904","type":"step-finish","tokens":{"total":25,"input":14,"output":7,"reasoning":0,"cache":{"write":0,"read":4}},"cost":0}');
INSERT INTO `part` VALUES ('prt_22fe407b900137btPbXZxAq4Q5','msg_22fe407b5001aO1c2BpE1XDwkx','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099803078,1796099803081,'{"type":"text","text":"the-loop delivery dlv-9f3c0a1b2d4e5f61 for local:octo/repo#15: issue_comment created\n[[slow 8000]]"}');
INSERT INTO `part` VALUES ('prt_22fe4103b001dTiMZYoWfFsJQa','msg_22fe41035001ND1D9d6pkdmRhh','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099805264,1796099805266,'{"type":"text","text":"the-loop delivery dlv-9f3c0a1b2d4e5f62 for local:octo/repo#15: issue_comment created\nwhile busy"}');
INSERT INTO `part` VALUES ('prt_22fe42889001DpMNwVhL2HiP3d','msg_22fe4080f001pV0xY4XD2ahjeq','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099811465,1796099811472,'{"snapshot":"4b825dc642cb6eb9a060e54bf8d69288fbee4904","type":"step-start"}');
INSERT INTO `part` VALUES ('prt_22fe42897001T0FgyNGIHw858F','msg_22fe4080f001pV0xY4XD2ahjeq','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099811479,1796099811499,'{"type":"text","text":"Done.","time":{"start":1796099811479,"end":1796099811496}}');
INSERT INTO `part` VALUES ('prt_22fe42976001n0VmraI7gfMENB','msg_22fe4080f001pV0xY4XD2ahjeq','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099811702,1796099811715,'{"reason":"stop","snapshot":"4b825dc642cb6eb9a060e54bf8d69288fbee4904","type":"step-finish","tokens":{"total":25,"input":14,"output":7,"reasoning":0,"cache":{"write":0,"read":4}},"cost":0}');
INSERT INTO `part` VALUES ('prt_22fe42e170017u8wwxxEhrKXUd','msg_22fe42b2c001RSCRfgz3q8RNcU','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099812887,1796099812890,'{"snapshot":"4b825dc642cb6eb9a060e54bf8d69288fbee4904","type":"step-start"}');
INSERT INTO `part` VALUES ('prt_22fe42e2d001vm7iT0h39E1E2N','msg_22fe42b2c001RSCRfgz3q8RNcU','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099812928,1796099812963,'{"type":"text","text":"Done.","time":{"start":1796099812928,"end":1796099812949}}');
INSERT INTO `part` VALUES ('prt_22fe42fca001OiLl4z23wUp7yA','msg_22fe42b2c001RSCRfgz3q8RNcU','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099813323,1796099813325,'{"reason":"stop","snapshot":"4b825dc642cb6eb9a060e54bf8d69288fbee4904","type":"step-finish","tokens":{"total":25,"input":14,"output":7,"reasoning":0,"cache":{"write":0,"read":4}},"cost":0}');
INSERT INTO `part` VALUES ('prt_22fe44423001hPoLdXwMTsxmI6','msg_22fe44415001PpL693Df5OBIRc','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099818541,1796099818561,'{"type":"text","text":"the-loop delivery dlv-9f3c0a1b2d4e5f63 for local:octo/repo#15: issue_comment created\n[[run touch made-by-agent]]"}');
INSERT INTO `part` VALUES ('prt_22fe446a10017qMypeXCCODK3u','msg_22fe4449c001x1P3EbCcPoh2gx','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099819181,1796099819184,'{"snapshot":"4b825dc642cb6eb9a060e54bf8d69288fbee4904","type":"step-start"}');
INSERT INTO `part` VALUES ('prt_22fe446c3001CGZ0LvFGvxsFW4','msg_22fe4449c001x1P3EbCcPoh2gx','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099819204,1796099830585,'{"type":"tool","tool":"bash","callID":"call_1796099819100","state":{"status":"completed","input":{"command":"touch made-by-agent","description":"as told"},"output":"(no output)","metadata":{"output":"(no output)","exit":0,"truncated":false},"title":"touch made-by-agent","time":{"start":1796099819290,"end":1796099830583}}}');
INSERT INTO `part` VALUES ('prt_22fe4768a001kZp2no88PD4jnA','msg_22fe4449c001x1P3EbCcPoh2gx','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099831434,1796099831450,'{"reason":"tool-calls","snapshot":"9fa54608d63a8b1df14f06af2fb14186dad98805","type":"step-finish","tokens":{"total":25,"input":14,"output":7,"reasoning":0,"cache":{"write":0,"read":4}},"cost":0}');
INSERT INTO `part` VALUES ('prt_22fe47847001lc02T1PMuut4v6','msg_22fe4449c001x1P3EbCcPoh2gx','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099831903,1796099831967,'{"type":"patch","hash":"4b825dc642cb6eb9a060e54bf8d69288fbee4904","files":["/tmp/oc/repo/made-by-agent"]}');
INSERT INTO `part` VALUES ('prt_22fe480bb001ky11RSwDvtIpKs','msg_22fe479d1001xhFbpXp22ECtff','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099834043,1796099834082,'{"snapshot":"9fa54608d63a8b1df14f06af2fb14186dad98805","type":"step-start"}');
INSERT INTO `part` VALUES ('prt_22fe48101001V26uGX9vjW8i9a','msg_22fe479d1001xhFbpXp22ECtff','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099834114,1796099834150,'{"type":"text","text":"Done.","time":{"start":1796099834113,"end":1796099834148}}');
INSERT INTO `part` VALUES ('prt_22fe482ef001nvI8qYhzjpgUkl','msg_22fe479d1001xhFbpXp22ECtff','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099834607,1796099834610,'{"reason":"stop","snapshot":"9fa54608d63a8b1df14f06af2fb14186dad98805","type":"step-finish","tokens":{"total":25,"input":14,"output":7,"reasoning":0,"cache":{"write":0,"read":4}},"cost":0}');
INSERT INTO `part` VALUES ('prt_22fe48a9b001pzrpd4RJdUZSSl','msg_22fe48a95001GlPtBUdnM21IG3','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099836584,1796099836585,'{"type":"text","text":"the-loop delivery dlv-9f3c0a1b2d4e5f64 for local:octo/repo#15: issue_comment created\n[[ask]]"}');
INSERT INTO `part` VALUES ('prt_22fe48c6b001M6LrTMR2yhAMZ5','msg_22fe48ad0001hoYSVGlHPqzQ76','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099837035,1796099837036,'{"snapshot":"9fa54608d63a8b1df14f06af2fb14186dad98805","type":"step-start"}');
INSERT INTO `part` VALUES ('prt_22fe48c71001JSeTzwjK04cbAT','msg_22fe48ad0001hoYSVGlHPqzQ76','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099837041,1796099838342,'{"type":"tool","tool":"question","callID":"call_1796099837008","state":{"status":"error","input":{"questions":[{"question":"Which colour?","header":"Colour","options":[{"label":"Red","description":"r"},{"label":"Blue","description":"b"}]}]},"error":"The user dismissed this question","time":{"start":1796099837057,"end":1796099838340}}}');
INSERT INTO `part` VALUES ('prt_22fe49212001KIFspP1USFa9jM','msg_22fe48ad0001hoYSVGlHPqzQ76','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099838483,1796099838484,'{"reason":"tool-calls","snapshot":"9fa54608d63a8b1df14f06af2fb14186dad98805","type":"step-finish","tokens":{"total":25,"input":14,"output":7,"reasoning":0,"cache":{"write":0,"read":4}},"cost":0}');
INSERT INTO `part` VALUES ('prt_22fe4c359001fqg7Ve0w2UgW1N','msg_22fe4c357001NdDOIZ3AqrFzbD','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099851104,1796099851105,'{"type":"text","text":"the-loop delivery dlv-9f3c0a1b2d4e5f65 for local:octo/repo#15: issue_comment created\n[[fail 429]]"}');
INSERT INTO `part` VALUES ('prt_22fe4d45d001JQzAsLKvZx2oAb','msg_22fe4d45c0017XMo7376s0OCHy','ses_dd01c3642ffeBGaABoNrGpVwnu',1796099855460,1796099855461,'{"type":"text","text":"the-loop delivery dlv-9f3c0a1b2d4e5f66 for local:octo/repo#15: issue_comment created\n[[fail 400]]"}');
CREATE INDEX `part_session_idx` ON `part` (`session_id`);
CREATE INDEX `message_session_time_created_id_idx` ON `message` (`session_id`,`time_created`,`id`);
