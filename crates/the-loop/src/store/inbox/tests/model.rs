//! Random sequences of requests against a model in memory that is as simple as the rules.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const ITEMS: [&str; 2] = [A, B];

#[derive(Clone, Debug)]
enum Op {
    Accept {
        id: u8,
        content: u8,
        numeric: Option<u8>,
        webhook: bool,
    },
    Route {
        nth: u8,
        first: bool,
        second: bool,
    },
    End {
        nth: u8,
        settled: bool,
    },
    Fail {
        nth: u8,
    },
    Step {
        nth: u8,
        item: usize,
        to: State,
    },
    Hold {
        nth: u8,
        item: usize,
    },
    Retry {
        nth: u8,
        force: bool,
    },
    Drop {
        nth: u8,
    },
    Reset {
        item: usize,
    },
    Close {
        item: usize,
        nth: u8,
    },
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    let nth = || 0..6u8;
    let which = || 0..ITEMS.len();
    prop_oneof![
        4 => (0..8u8, 0..6u8, proptest::option::of(0..3u8), any::<bool>())
            .prop_map(|(id, content, numeric, webhook)| Op::Accept { id, content, numeric, webhook }),
        4 => (nth(), any::<bool>(), any::<bool>())
            .prop_map(|(nth, first, second)| Op::Route { nth, first, second }),
        1 => (nth(), any::<bool>()).prop_map(|(nth, settled)| Op::End { nth, settled }),
        1 => nth().prop_map(|nth| Op::Fail { nth }),
        8 => (nth(), which(), proptest::sample::select(State::ALL.to_vec()))
            .prop_map(|(nth, item, to)| Op::Step { nth, item, to }),
        1 => (nth(), which()).prop_map(|(nth, item)| Op::Hold { nth, item }),
        2 => (nth(), any::<bool>()).prop_map(|(nth, force)| Op::Retry { nth, force }),
        1 => nth().prop_map(|nth| Op::Drop { nth }),
        1 => which().prop_map(|item| Op::Reset { item }),
        1 => (which(), nth()).prop_map(|(item, nth)| Op::Close { item, nth }),
        1 => Just(Op::Reopen),
    ]
}

/// State and reason.
type Standing = (State, Option<String>);

#[derive(Debug, Default)]
struct Model {
    /// By seq: the delivery's own standing, and one for each item.
    deliveries: Vec<(Standing, BTreeMap<usize, Standing>)>,
    names: BTreeMap<String, usize>,
    marks: [usize; ITEMS.len()],
}

fn offered(id: u8, content: u8, numeric: Option<u8>, webhook: bool) -> Delivery {
    let mut delivery = comment(&content.to_string());
    delivery.delivery_id = format!("id-{id}");
    // Content 0 lacks a field and is no name.
    if content == 0 {
        delivery.content_key = "github/github.com/comment/-/created".to_owned();
    }
    delivery.numeric_key = numeric.map(|n| format!("github/github.com/comment/#{n}/created"));
    delivery.ingress = if webhook {
        Ingress::Webhook
    } else {
        Ingress::Poll
    };
    delivery
}

impl Model {
    /// Number of the delivery that was offered, and whether it was opened again.
    fn accept(&mut self, delivery: &Delivery) -> (usize, bool) {
        let mut names = vec![delivery.delivery_id.clone()];
        names.extend(delivery.numeric_key.clone());
        if delivery.content_key_is_whole() {
            names.push(delivery.content_key.clone());
        }
        names.reverse();
        let known = names.iter().find_map(|name| self.names.get(name).copied());
        let seq = known.unwrap_or_else(|| {
            self.deliveries
                .push(((State::Accepted, None), BTreeMap::new()));
            self.deliveries.len()
        });
        for name in names {
            self.names.entry(name).or_insert(seq);
        }
        let mut opened = false;
        if known.is_some() && delivery.ingress == Ingress::Webhook {
            for (item, standing) in &mut self.deliveries[seq - 1].1 {
                if standing.0 == State::Abandoned && self.marks[*item] < seq {
                    *standing = (State::Queued, None);
                    opened = true;
                }
            }
        }
        (seq, opened)
    }

    fn unjudged(&self, seq: usize) -> bool {
        let state = self.deliveries.get(seq.wrapping_sub(1)).map(|d| d.0.0);
        matches!(state, Some(State::Accepted | State::Failed))
    }

    fn step(&mut self, seq: usize, item: usize, to: State) -> bool {
        let Some(standing) = self.standing(seq, item) else {
            return false;
        };
        let over = matches!(standing.0, State::Abandoned | State::Dropped);
        let allowed = standing.0.may_become(to) && !over;
        if allowed {
            *standing = (to, None);
        }
        allowed
    }

    fn standing(&mut self, seq: usize, item: usize) -> Option<&mut Standing> {
        self.deliveries
            .get_mut(seq.wrapping_sub(1))?
            .1
            .get_mut(&item)
    }

    fn retry(&mut self, seq: usize, force: bool) -> bool {
        let marks = self.marks;
        let Some((own, outcomes)) = self.deliveries.get_mut(seq.wrapping_sub(1)) else {
            return false;
        };
        if outcomes.is_empty() {
            let again = matches!(own.0, State::Failed | State::Dropped);
            if again {
                *own = (State::Accepted, None);
            }
            return again;
        }
        let mut any = false;
        for (item, standing) in outcomes {
            let may = match standing.0 {
                State::Failed | State::Abandoned | State::Dropped => true,
                State::Uncertain => force,
                _ => false,
            };
            if may && marks[*item] < seq {
                *standing = (State::Queued, None);
                any = true;
            }
        }
        any
    }

    fn drop(&mut self, seq: usize) -> bool {
        let Some((own, outcomes)) = self.deliveries.get_mut(seq.wrapping_sub(1)) else {
            return false;
        };
        let gone = || (State::Dropped, Some("operator".to_owned()));
        if outcomes.is_empty() {
            let open = matches!(own.0, State::Accepted | State::Failed);
            if open {
                *own = gone();
            }
            return open;
        }
        if outcomes
            .values()
            .any(|standing| standing.0 == State::Sending)
        {
            return false;
        }
        let mut any = false;
        for standing in outcomes.values_mut() {
            if !matches!(
                standing.0,
                State::Confirmed | State::Settled | State::Dropped
            ) {
                *standing = gone();
                any = true;
            }
        }
        any
    }

    fn mark(&mut self, item: usize, through: usize, last: usize, reason: &str) {
        self.marks[item] = self.marks[item].max(through);
        for (n, (_, outcomes)) in self.deliveries.iter_mut().enumerate() {
            let Some(standing) = outcomes.get_mut(&item) else {
                continue;
            };
            let unfinished = matches!(
                standing.0,
                State::Queued | State::Sending | State::Pasted | State::Failed
            );
            if unfinished && n < last {
                *standing = (State::Dropped, Some(reason.to_owned()));
            }
        }
    }
}

/// What the inbox holds, in the model's shape.
fn stored(inbox: &Inbox, many: usize) -> Vec<(Standing, BTreeMap<usize, Standing>)> {
    (1..=many as Seq)
        .map(|seq| {
            let row = inbox.delivery(seq).unwrap().unwrap();
            let outcomes = inbox.outcomes_of(seq).unwrap().into_iter().map(|row| {
                let item = ITEMS.iter().position(|name| key(name) == row.key).unwrap();
                (item, (row.state, row.reason))
            });
            ((row.state, row.reason), outcomes.collect())
        })
        .collect()
}

fn run(ops: Vec<Op>) {
    let bench = Bench::new();
    let mut inbox = bench.open();
    let mut model = Model::default();
    for op in ops {
        // Deliveries are named by how many came after them, so that most names hit.
        let seq_of = |nth: u8| model.deliveries.len().saturating_sub(usize::from(nth));
        match op.clone() {
            Op::Accept {
                id,
                content,
                numeric,
                webhook,
            } => {
                let delivery = offered(id, content, numeric, webhook);
                let (seq, opened) = model.accept(&delivery);
                let answer = match inbox.accept(&delivery).unwrap() {
                    Accepted::New { seq } => (seq, false),
                    Accepted::Duplicate { seq, reopened, .. } => (seq, reopened),
                };
                assert_eq!(answer, (seq as Seq, opened), "{op:?}");
            }
            Op::Route { nth, first, second } => {
                let seq = seq_of(nth);
                let wanted: Vec<usize> = [(first, 0), (second, 1)]
                    .into_iter()
                    .filter_map(|(on, item)| on.then_some(item))
                    .collect();
                if wanted.is_empty() {
                    continue;
                }
                let names: Vec<&str> = wanted.iter().map(|item| ITEMS[*item]).collect();
                let routed = inbox.route(seq as Seq, &bench.outcomes(&names));
                assert_eq!(routed.is_ok(), model.unjudged(seq), "{op:?}");
                if let Ok(routed) = routed {
                    let reasons: BTreeMap<ItemKey, Option<String>> = routed
                        .dropped
                        .into_iter()
                        .map(|row| (row.key, row.reason))
                        .collect();
                    let marks = model.marks;
                    let (own, outcomes) = &mut model.deliveries[seq - 1];
                    *own = (State::Routed, None);
                    for item in wanted {
                        let behind = marks[item] >= seq;
                        let reason = reasons.get(&key(ITEMS[item])).cloned().flatten();
                        assert_eq!(reason.is_some(), behind, "{op:?}");
                        let state = if behind {
                            State::Dropped
                        } else {
                            State::Queued
                        };
                        outcomes.insert(item, (state, reason));
                    }
                }
            }
            Op::End { nth, settled } => {
                let seq = seq_of(nth);
                let state = if settled {
                    State::Settled
                } else {
                    State::Dropped
                };
                let ended = inbox.end_delivery(seq as Seq, state, "why").is_ok();
                assert_eq!(ended, model.unjudged(seq), "{op:?}");
                if ended {
                    model.deliveries[seq - 1].0 = (state, Some("why".to_owned()));
                }
            }
            Op::Fail { nth } => {
                let seq = seq_of(nth);
                let failed = inbox.fail_delivery(seq as Seq, "why", bench.now(), true);
                assert_eq!(failed.is_ok(), model.unjudged(seq), "{op:?}");
                if failed.is_ok() {
                    model.deliveries[seq - 1].0 = (State::Failed, Some("why".to_owned()));
                }
            }
            Op::Step { nth, item, to } => {
                let seq = seq_of(nth);
                let change = OutcomeChange::to(to);
                let stepped = inbox.change(&AllLocks, seq as Seq, &key(ITEMS[item]), change);
                assert_eq!(stepped.is_ok(), model.step(seq, item, to), "{op:?}");
            }
            Op::Hold { nth, item } => {
                let seq = seq_of(nth);
                let change = OutcomeChange::hold("parked");
                let held = inbox.change(&AllLocks, seq as Seq, &key(ITEMS[item]), change);
                let standing = model.standing(seq, item);
                let queued = standing.filter(|standing| standing.0 == State::Queued);
                assert_eq!(held.is_ok(), queued.is_some(), "{op:?}");
                if let Some(standing) = queued {
                    standing.1 = Some("parked".to_owned());
                }
            }
            Op::Retry { nth, force } => {
                let seq = seq_of(nth);
                let answer = inbox.retry(&[seq.to_string()], force).unwrap();
                let queued = matches!(answer[0].1, RetryAnswer::Queued(_));
                assert_eq!(queued, model.retry(seq, force), "{op:?}");
            }
            Op::Drop { nth } => {
                let seq = seq_of(nth);
                let what = DropWhat::Ids(vec![seq.to_string()]);
                let answer = inbox.drop_deliveries(what).unwrap();
                let dropped = matches!(answer[0].1, DropAnswer::Dropped(_));
                assert_eq!(dropped, model.drop(seq), "{op:?}");
            }
            Op::Reset { item } => {
                let last = model.deliveries.len();
                inbox
                    .set_watermark(&AllLocks, &key(ITEMS[item]), Mark::Reset)
                    .unwrap();
                model.mark(item, last, last, "reset");
            }
            Op::Close { item, nth } => {
                let seq = seq_of(nth);
                if seq == 0 {
                    continue;
                }
                let mark = Mark::Close {
                    seq: seq as Seq,
                    closed_at: None,
                };
                inbox
                    .set_watermark(&AllLocks, &key(ITEMS[item]), mark)
                    .unwrap();
                model.mark(item, seq, seq - 1, "item-closed");
            }
            Op::Reopen => {
                drop(inbox);
                inbox = bench.open();
            }
        }
        assert_eq!(
            stored(&inbox, model.deliveries.len()),
            model.deliveries,
            "after {op:?}"
        );
    }
    let listed = inbox.list(&ListFilter {
        states: States::All,
        ..ListFilter::default()
    });
    let lines: usize = model.deliveries.iter().map(|(_, o)| o.len().max(1)).sum();
    assert_eq!(listed.unwrap().len(), lines);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn any_sequence_of_requests_leaves_what_the_model_says(
        ops in proptest::collection::vec(op(), 1..60)
    ) {
        run(ops);
    }
}
