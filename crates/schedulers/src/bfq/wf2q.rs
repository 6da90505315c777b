//! B-WF2Q+: fair queueing in which every queue is served in budgets.
//!
//! An *entity* is a queue or a group of entities. A waiting entity is *eligible* if its virtual start is not after the
//! virtual time V. Of the eligible entities the one with the earliest virtual finish is served. Charging service moves
//! V on by service / sum of weights. An entity's own times move by service / its weight. So over any interval the
//! service of two backlogged entities stays in proportion to their weights, to within one budget each.
//!
//! Three classes (real time, best effort, idle) are served strictly in this order, each by virtual times of its own.
//! The exception: the idle class gets a turn every 200 ms. The engine knows budgets, weights and jiffies, nothing of
//! disks, requests or processes.

mod level;
mod path;
mod waiting;

use super::rbtree::{NIL, Root, Trees};

/// Fractional bits of virtual times.
const SHIFT: u32 = 22;

/// Number of an entity.
pub type EntityId = u32;
/// Number of a scheduling set (a group's, or the root's, which is [`ROOT`]).
pub type SetId = u32;
/// The root set.
pub const ROOT: SetId = 0;

/// What differs between kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Each set remembers its next candidate; without it every choice looks the trees up and raises V.
    pub cached_next: bool,
    /// A newcomer that does not beat the candidate at once makes the set look its trees up (kernels from
    /// 4.17 on); otherwise the candidate stays unless the newcomer is of a higher class.
    pub lookup_when_beaten: bool,
    /// The look-up made when a slot ends may raise V although a queue is still in service.
    pub raise_on_expiry: bool,
    /// A queue that stays backlogged at the end of its slot becomes the candidate without a look-up, and so
    /// without raising V, where a newcomer would.
    pub quick_on_expiry: bool,
    /// An entity that leaves without being in service finishes where its service ends, like the one in
    /// service, not where its budget would have.
    pub leaves_as_served: bool,
    /// V that a look-up raises passes entities of the idle tree, which then no longer count.
    pub forgets_when_raised: bool,
    /// The idle class' turn comes again 200 ms after one that found an entity, not after any look-up.
    pub idle_turn_when_found: bool,
}

/// Which tree an entity is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    None,
    Active,
    Idle,
}

/// What an entity stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A queue, by the caller's number.
    Queue(u32),
    /// A group with this set.
    Group(SetId),
    /// A freed slot.
    Nobody,
}

#[derive(Clone, Debug)]
struct Entity {
    start: u64,
    finish: u64,
    budget: u64,
    service: u64,
    weight: u64,
    class: u8,
    /// The weight without a raise that `weight` stands on.
    original: u64,
    new_weight: u64,
    new_original: u64,
    new_class: u8,
    /// The divisor of a back-shift: the weight-raising factor of a queue, 1 for a group.
    coeff: u64,
    on: On,
    /// In the sum of weights of its tree: active, on the idle tree or in service.
    counted: bool,
    set: SetId,
    owner: Owner,
    /// Requests allocated below it.
    allocated: u32,
    /// Neighbours in the list of waiting queues.
    newer: EntityId,
    older: EntityId,
}

#[derive(Clone, Copy, Debug)]
struct Tree {
    active: Root,
    idle: Root,
    /// The last entity of the idle tree as the kernel remembers it. An entity that finishes with it does not take its
    /// place. When the last one goes, the one before it becomes the last, or none does.
    last_idle: EntityId,
    vtime: u64,
    wsum: u64,
}

impl Default for Tree {
    fn default() -> Self {
        Tree { active: Root::default(), idle: Root::default(), last_idle: NIL, vtime: 0, wsum: 0 }
    }
}

#[derive(Clone, Debug)]
struct Set {
    trees: [Tree; 3],
    in_service: EntityId,
    next: EntityId,
    /// The entity of the group this set belongs to; `NIL` for the root.
    group: EntityId,
    /// Entities on the active trees.
    active: u32,
    idle_turn: i64,
}

/// The engine.
#[derive(Clone, Debug)]
pub struct Engine {
    rules: Rules,
    entities: Vec<Entity>,
    free: Vec<EntityId>,
    sets: Vec<Set>,
    nodes: Trees,
    /// Now, in jiffies.
    now: i64,
    idle_period: i64,
    /// The queue put on its tree last, of those that wait there.
    newest: EntityId,
    forgotten: Vec<EntityId>,
}

fn delta(service: u64, weight: u64) -> u64 {
    (service << SHIFT) / weight.max(1)
}

impl Engine {
    /// An engine with an empty root set. `hz` is the kernel's tick rate.
    #[must_use]
    pub fn new(rules: Rules, hz: u32) -> Engine {
        let mut e = Engine {
            rules,
            entities: Vec::new(),
            free: Vec::new(),
            sets: Vec::new(),
            nodes: Trees::default(),
            now: 0,
            idle_period: i64::from(hz / 5),
            newest: NIL,
            forgotten: Vec::new(),
        };
        e.push_set(NIL);
        e
    }

    fn push_set(&mut self, group: EntityId) -> SetId {
        let set = Set {
            trees: [Tree::default(); 3],
            in_service: NIL,
            next: NIL,
            group,
            active: 0,
            // Long ago: the first look-up is a turn already.
            idle_turn: i64::MIN / 2,
        };
        self.sets.push(set);
        (self.sets.len() - 1) as SetId
    }

    fn add(&mut self, set: SetId, weight: u64, class: u8, owner: Owner) -> EntityId {
        let entity = Entity {
            start: 0,
            finish: 0,
            budget: 0,
            service: 0,
            weight,
            class,
            original: weight,
            new_weight: weight,
            new_original: weight,
            new_class: class,
            coeff: 1,
            on: On::None,
            counted: false,
            set,
            owner,
            allocated: 0,
            newer: NIL,
            older: NIL,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.entities[id as usize] = entity;
                id
            }
            None => {
                self.entities.push(entity);
                (self.entities.len() - 1) as EntityId
            }
        };
        self.nodes.grow(id);
        id
    }

    /// Adds a queue under `set`; `class` 0 is real time, 1 best effort, 2 idle.
    pub fn add_queue(&mut self, set: SetId, weight: u64, class: u8, queue: u32) -> EntityId {
        self.add(set, weight, class, Owner::Queue(queue))
    }

    /// Adds a group (class best effort) under `parent` and returns the group's own set.
    pub fn add_group(&mut self, parent: SetId, weight: u64) -> SetId {
        let e = self.add(parent, weight, 1, Owner::Nobody);
        let set = self.push_set(e);
        self.entities[e as usize].owner = Owner::Group(set);
        set
    }

    /// Frees an entity that is neither waiting nor counted.
    pub fn release(&mut self, e: EntityId) {
        debug_assert!(!self.e(e).counted);
        self.em(e).owner = Owner::Nobody;
        self.free.push(e);
    }

    /// Sets the clock, in jiffies; every hook of a scheduler does this first.
    pub fn tick(&mut self, jiffies: i64) {
        self.now = jiffies;
    }

    fn e(&self, e: EntityId) -> &Entity {
        &self.entities[e as usize]
    }

    fn em(&mut self, e: EntityId) -> &mut Entity {
        &mut self.entities[e as usize]
    }

    fn s(&self, set: SetId) -> &Set {
        &self.sets[set as usize]
    }

    fn sm(&mut self, set: SetId) -> &mut Set {
        &mut self.sets[set as usize]
    }

    fn tree_of(&mut self, e: EntityId) -> &mut Tree {
        let Entity { set, class, .. } = *self.e(e);
        &mut self.sets[set as usize].trees[class as usize]
    }

    fn vtime_of(&self, e: EntityId) -> u64 {
        let Entity { set, class, .. } = *self.e(e);
        self.s(set).trees[class as usize].vtime
    }

    /// Budget of an entity, in sectors.
    #[must_use]
    pub fn budget(&self, e: EntityId) -> u64 {
        self.e(e).budget
    }

    /// Service of an entity in its slot, in sectors.
    #[must_use]
    pub fn service(&self, e: EntityId) -> u64 {
        self.e(e).service
    }

    /// Budget not yet used.
    #[must_use]
    pub fn left(&self, e: EntityId) -> u64 {
        let e = self.e(e);
        e.budget.saturating_sub(e.service)
    }

    /// Weight in force.
    #[must_use]
    pub fn weight(&self, e: EntityId) -> u64 {
        self.e(e).weight
    }

    /// How many times its plain weight an entity has.
    #[must_use]
    pub fn raised(&self, e: EntityId) -> u64 {
        let e = self.e(e);
        e.weight / e.original.max(1)
    }

    /// Virtual start and finish, and V of the entity's tree, in sectors per weight.
    #[must_use]
    pub fn times(&self, e: EntityId) -> (f64, f64, f64) {
        let f = |v: u64| v as f64 / f64::from(1u32 << SHIFT);
        (f(self.e(e).start), f(self.e(e).finish), f(self.vtime_of(e)))
    }

    /// Sum of the weights in the entity's tree.
    #[must_use]
    pub fn weight_sum(&self, e: EntityId) -> u64 {
        let Entity { set, class, .. } = *self.e(e);
        self.s(set).trees[class as usize].wsum
    }

    /// Whether the entity still counts in the sum of weights.
    #[must_use]
    pub fn counted(&self, e: EntityId) -> bool {
        self.e(e).counted
    }

    /// What an entity stands for.
    #[must_use]
    pub fn owner(&self, e: EntityId) -> Owner {
        self.e(e).owner
    }

    /// The set an entity is in.
    #[must_use]
    pub fn set_of(&self, e: EntityId) -> SetId {
        self.e(e).set
    }

    /// Applies the requested weight at once, for an entity in service.
    pub fn apply_now(&mut self, e: EntityId) {
        self.apply_weight(e);
    }

    /// Requests allocated for an entity, those of its children included.
    #[must_use]
    pub fn allocated(&self, e: EntityId) -> u32 {
        self.e(e).allocated
    }

    /// Counts a request for a queue and its groups.
    pub fn allocate(&mut self, e: EntityId) {
        let mut e = e;
        while e != NIL {
            self.em(e).allocated += 1;
            e = self.s(self.e(e).set).group;
        }
    }

    /// Takes a request off a queue and its groups.
    pub fn unallocate(&mut self, e: EntityId) {
        let mut e = e;
        while e != NIL {
            let entity = self.em(e);
            entity.allocated = entity.allocated.saturating_sub(1);
            e = self.s(self.e(e).set).group;
        }
    }

    /// Moves an entity that is not counted to another set.
    pub fn move_to(&mut self, e: EntityId, set: SetId) {
        debug_assert!(!self.e(e).counted);
        self.em(e).set = set;
    }

    /// Sets the budget of an entity that is not on a tree, or is in service.
    pub fn set_budget(&mut self, e: EntityId, budget: u64) {
        self.em(e).budget = budget;
    }

    /// Sets the service of the slot.
    pub fn set_service(&mut self, e: EntityId, service: u64) {
        self.em(e).service = service;
    }

    /// Asks for a weight (`original` times `coeff`) and a class; they take effect when the entity is next
    /// put on its tree.
    pub fn set_weight(&mut self, e: EntityId, original: u64, coeff: u64, class: u8) {
        let e = self.em(e);
        (e.new_weight, e.new_original) = (original * coeff, original);
        e.coeff = coeff;
        e.new_class = class;
    }
}
