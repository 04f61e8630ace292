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
            let over = matches!(
                standing.0,
                State::Failed | State::Abandoned | State::Dropped
            );
            let may = over || (force && standing.0 == State::Uncertain);
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

/// The inbox and the model beside each other.
struct Pair {
    bench: Bench,
    inbox: Inbox,
    model: Model,
}

impl Pair {
    /// Deliveries are named by how many came after them, so that most names hit.
    fn seq(&self, nth: u8) -> usize {
        self.model.deliveries.len().saturating_sub(usize::from(nth))
    }

    fn accept(&mut self, delivery: &Delivery) {
        let (seq, opened) = self.model.accept(delivery);
        let answer = match self.inbox.accept(delivery).unwrap() {
            Accepted::New { seq } => (seq, false),
            Accepted::Duplicate { seq, reopened, .. } => (seq, reopened),
        };
        assert_eq!(answer, (seq as Seq, opened));
    }

    fn route(&mut self, seq: usize, wanted: &[usize]) {
        let names: Vec<&str> = wanted.iter().map(|item| ITEMS[*item]).collect();
        let routed = self.inbox.route(seq as Seq, &self.bench.outcomes(&names));
        assert_eq!(routed.is_ok(), self.model.unjudged(seq));
        let Ok(routed) = routed else {
            return;
        };
        let dropped = routed.dropped.into_iter().map(|row| (row.key, row.reason));
        let reasons: BTreeMap<ItemKey, Option<String>> = dropped.collect();
        let marks = self.model.marks;
        let (own, outcomes) = &mut self.model.deliveries[seq - 1];
        *own = (State::Routed, None);
        for item in wanted {
            let behind = marks[*item] >= seq;
            let reason = reasons.get(&key(ITEMS[*item])).cloned().flatten();
            assert_eq!(reason.is_some(), behind);
            let state = if behind {
                State::Dropped
            } else {
                State::Queued
            };
            outcomes.insert(*item, (state, reason));
        }
    }

    /// A delivery leaves acceptance without outcomes.
    fn leave(&mut self, seq: usize, to: State) {
        let left = if to == State::Failed {
            let at = self.bench.now();
            let failed = self.inbox.fail_delivery(seq as Seq, "why", at, true);
            failed.is_ok()
        } else {
            self.inbox.end_delivery(seq as Seq, to, "why").is_ok()
        };
        assert_eq!(left, self.model.unjudged(seq));
        if left {
            self.model.deliveries[seq - 1].0 = (to, Some("why".to_owned()));
        }
    }

    fn step(&mut self, seq: usize, item: usize, to: State) {
        let change = OutcomeChange::to(to);
        let stepped = self
            .inbox
            .change(&AllLocks, seq as Seq, &key(ITEMS[item]), change);
        assert_eq!(stepped.is_ok(), self.model.step(seq, item, to));
    }

    fn hold(&mut self, seq: usize, item: usize) {
        let change = OutcomeChange::hold("parked");
        let held = self
            .inbox
            .change(&AllLocks, seq as Seq, &key(ITEMS[item]), change);
        let standing = self.model.standing(seq, item);
        let queued = standing.filter(|standing| standing.0 == State::Queued);
        assert_eq!(held.is_ok(), queued.is_some());
        if let Some(standing) = queued {
            standing.1 = Some("parked".to_owned());
        }
    }

    fn retry(&mut self, seq: usize, force: bool) {
        let answer = self.inbox.retry(&[seq.to_string()], force).unwrap();
        let queued = matches!(answer[0].1, RetryAnswer::Queued(_));
        assert_eq!(queued, self.model.retry(seq, force));
    }

    fn drop(&mut self, seq: usize) {
        let what = DropWhat::Ids(vec![seq.to_string()]);
        let answer = self.inbox.drop_deliveries(what).unwrap();
        let dropped = matches!(answer[0].1, DropAnswer::Dropped(_));
        assert_eq!(dropped, self.model.drop(seq));
    }

    fn mark(&mut self, item: usize, mark: Mark) {
        self.inbox
            .set_watermark(&AllLocks, &key(ITEMS[item]), mark)
            .unwrap();
        match mark {
            Mark::Reset => {
                let last = self.model.deliveries.len();
                self.model.mark(item, last, last, "reset");
            }
            Mark::Close { seq, .. } => {
                let seq = seq as usize;
                self.model.mark(item, seq, seq - 1, "item-closed");
            }
        }
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Accept {
                id,
                content,
                numeric,
                webhook,
            } => self.accept(&offered(id, content, numeric, webhook)),
            Op::Route { nth, first, second } => {
                let wanted: Vec<usize> = [(first, 0), (second, 1)]
                    .into_iter()
                    .filter_map(|(on, item)| on.then_some(item))
                    .collect();
                if !wanted.is_empty() {
                    self.route(self.seq(nth), &wanted);
                }
            }
            Op::End { nth, settled: true } => self.leave(self.seq(nth), State::Settled),
            Op::End { nth, .. } => self.leave(self.seq(nth), State::Dropped),
            Op::Fail { nth } => self.leave(self.seq(nth), State::Failed),
            Op::Step { nth, item, to } => self.step(self.seq(nth), item, to),
            Op::Hold { nth, item } => self.hold(self.seq(nth), item),
            Op::Retry { nth, force } => self.retry(self.seq(nth), force),
            Op::Drop { nth } => self.drop(self.seq(nth)),
            Op::Reset { item } => self.mark(item, Mark::Reset),
            Op::Close { item, nth } => {
                let seq = self.seq(nth) as Seq;
                if seq > 0 {
                    let closed_at = None;
                    self.mark(item, Mark::Close { seq, closed_at });
                }
            }
            Op::Reopen => self.inbox = self.bench.open(),
        }
    }
}

fn run(ops: Vec<Op>) {
    let bench = Bench::new();
    let inbox = bench.open();
    let mut pair = Pair {
        bench,
        inbox,
        model: Model::default(),
    };
    for op in ops {
        pair.apply(op.clone());
        let many = pair.model.deliveries.len();
        let stored = stored(&pair.inbox, many);
        assert_eq!(stored, pair.model.deliveries, "after {op:?}");
    }
    let all = ListFilter {
        states: States::All,
        ..ListFilter::default()
    };
    let outcomes = pair.model.deliveries.iter().map(|(_, o)| o.len().max(1));
    let lines: usize = outcomes.sum();
    assert_eq!(pair.inbox.list(&all).unwrap().len(), lines);
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
